"""A table feature that leaves a table: what it leaves behind, and the commits that take it away.

Must not live here: how files are written anew (`alluvium.commands`).
"""
