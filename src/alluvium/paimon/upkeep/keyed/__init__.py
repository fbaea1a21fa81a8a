"""Compaction of tables with a primary key: which sorted runs, what becomes of their files, and what entries come of it.

Must not live here: how rows merge (`spark`), and compaction of tables without keys (`append_compact`).
"""
