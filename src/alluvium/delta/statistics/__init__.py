"""Statistics of data files: from JSON to Arrow columns and back, and what they say of values.

Must not live here: which files a predicate keeps (`expr.skipping`), and reading of Parquet footers (`codecs`).
"""
