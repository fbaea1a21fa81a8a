"""Rows without Spark as files: a write plan is carried out by pyarrow, in one process.

Must not live here: what a table is, and the commit: plans say it, and `commands` does it.
"""
