"""The change data feed: which rows versions inserted, updated and deleted, as a scan plan.

Engines execute the plan like any other. Must not live here: pyspark, reading of data files, the columns of a snapshot.
"""
