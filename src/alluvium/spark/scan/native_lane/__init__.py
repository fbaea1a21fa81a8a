"""The native lane: Spark's own Parquet reader on a classic session, asked for files by a `FileIndex` in Python.

Must not live here: what Spark Connect needs as well (it stands above, in `spark.scan`).
"""
