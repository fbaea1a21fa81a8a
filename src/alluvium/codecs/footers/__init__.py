"""Statistics of data files: out of their footers, and of columns before they are written.

Must not live here: reading of rows.
"""
