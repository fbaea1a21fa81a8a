"""A table as a stream of its versions: offsets between snapshots, where a stream begins, what consumers have read.

Must not live here: pyspark, checkpoints of queries, the plans of changes (`paimon.view.changes`), sinks.
"""
