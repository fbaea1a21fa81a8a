"""Statements about what a session keeps under a name: cached tables, temporary views of a table by its path.

Must not live here: what Spark's cache is told when a table has changed (`spark/sessions/cached_tables`).
"""
