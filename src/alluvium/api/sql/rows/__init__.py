"""Statements that change rows: INSERT, UPDATE, DELETE, MERGE, TRUNCATE, each a module that calls the verb.

Must not live here: what the verb does (`commands/`).
"""
