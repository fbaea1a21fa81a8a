"""MERGE: its clauses, its source, the join of both sides, and what each pair comes to.

Must not live here: how changed rows get into a table (`commands.rows`): DELETE and UPDATE share it.
"""
