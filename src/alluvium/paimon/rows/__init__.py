"""Edits of rows: the files that may hold them, and the deletion vectors that say which are gone.

Must not live here: which rows change (`commands/`), and what becomes of entries in a commit (`paimon.commit`).
"""
