"""Work on a table that adds no rows: restore, features dropped, damage found and mended, row ids given, conversion.

Must not live here: what keeps only the log short (`delta.log_upkeep`).
"""
