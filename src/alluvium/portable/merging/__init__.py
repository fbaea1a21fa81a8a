"""Rows that merge by key: sorted, taken in rounds, aggregated.

Must not live here: formats of files.
"""
