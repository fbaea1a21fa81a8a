"""Data files as streams of record batches: one module a format, and what readers of all formats share.

Must not live here: rows that merge by key.
"""
