"""Names and types in Spark's terms: schemas, select lists, SQL text with names in it, lengths of text.

Must not live here: anything that needs a session.
"""
