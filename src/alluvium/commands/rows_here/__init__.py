"""Rows written and changed without Spark: the verbs, carried out by pyarrow in this process, batch by batch.

Must not live here: pyspark, and how a commit is made: the target knows.
"""
