"""The life of a Paimon table as methods of `PaimonTable`: tags, branches, rollback; what expires, what is cleaned up.

Must not live here: how it is done (`alluvium.paimon.upkeep`), and rows (`alluvium.api.paimon`).
"""
