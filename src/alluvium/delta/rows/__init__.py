"""Edits of rows: which files may hold them, and the actions that mark or replace them.

Must not live here: reading of rows and conditions on them: engines and `commands` do that.
"""
