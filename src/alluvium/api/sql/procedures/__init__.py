"""`CALL`: procedures of tables of ours.

Must not live here: what they do (`alluvium.api.paimon.life`).
"""
