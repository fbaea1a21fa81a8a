"""Values in bytes: partition paths, footers, bitmaps, Avro, variants. Pure.

Must not live here: storage, tables, and what the values mean.
"""
