"""Delta tables without a session: rows written and changed, and upkeep, in this process.

Must not live here: pyspark.
"""
