"""Rows of Delta tables as DataFrames: read, changed in a range, written.

Must not live here: what needs no Spark (`api.delta`), work on rows (`commands`), what a version means (`delta`).
"""
