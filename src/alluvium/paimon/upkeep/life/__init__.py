"""Names for states of a table, and what goes along them: tags, branches, rollback, consumers, marks of partitions.

Must not live here: which files may be deleted (`paimon.upkeep.removal`).
"""
