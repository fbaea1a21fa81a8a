"""The command line: parses flags, prints.

Must not live here: anything that a caller of `alluvium` could want.
"""
