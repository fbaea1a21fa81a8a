"""Values in bytes: partition paths, Parquet footers, bitmaps. Pure; no storage, no table."""
