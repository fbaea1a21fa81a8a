"""Predicates: Spark SQL text to a small tree (the only sqlglot door), evaluated on rows and on statistics.

Must not live here: storage, tables, Spark.
"""
