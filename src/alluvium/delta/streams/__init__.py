"""A table as a stream of its versions: offsets, which files lie between two of them, when a stream has to stop.

Must not live here: pyspark, checkpoints of queries, the columns of a change feed (`delta.changes`), sinks.
"""
