"""What a session of Spark is told: enable, and tables by name through PySpark's own readers and writers.

Must not live here: what such a call does to a table: the doors and `api.reader`, `api.writer` know.
"""
