"""CLONE: a table that begins as another one at a version, with its files or by naming them where they lie.

Must not live here: how names are found and given (`api`), and how an object gets from store to store (`storage`).
"""
