"""The door to Paimon tables: PaimonTable, the view without Spark, DataFrames of rows, changes and system tables.

Must not live here: what is the same for both formats (it stands below, in `api`), and protocol (`alluvium.paimon`).
"""
