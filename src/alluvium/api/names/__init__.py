"""Tables by name: what a name means in a statement of Spark, and PySpark's own writers to named tables.

Must not live here: statements of SQL (`api.sql`), and what a verb does.
"""
