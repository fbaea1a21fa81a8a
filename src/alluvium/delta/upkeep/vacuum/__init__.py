"""VACUUM: which files no version within the retention needs, and which versions would be lost with others.

Must not live here: how files are listed and deleted (`alluvium.storage`).
"""
