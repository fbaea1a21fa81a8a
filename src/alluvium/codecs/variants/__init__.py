"""Variants: the encoding, shredded columns put together again, and their text.

Must not live here: which columns are variants.
"""
