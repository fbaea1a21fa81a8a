"""Bitmaps of row positions and of numbers, in the forms that tables and engines store.

Must not live here: which rows they stand for.
"""
