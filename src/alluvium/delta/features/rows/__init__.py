"""Features about rows: which are deleted, who they are, how they lie in files, what is told of their changes.

One module an entry of the specification, and what two entries share. Must not live here: the change feed itself
(`delta.changes`), and edits of rows (`delta.rows`).
"""
