"""CONVERT TO DELTA: files that lie there already become a table, where they lie.

Must not live here: reading their rows; only names, sizes and footers are looked at.
"""
