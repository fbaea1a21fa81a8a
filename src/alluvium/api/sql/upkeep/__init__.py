"""Statements that only Delta knows, once `grammar` has read them: each a module that calls the verb.

Must not live here: how such a statement is written (`api/sql/grammar`).
"""
