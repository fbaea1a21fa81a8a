"""Verbs over rows: where an engine and a format meet.

A verb is one module, with three of them a room. Must not live here: options and names of tables (`api`), rules of a
format, and expressions of Spark's own making (`spark`).
"""
