"""Verbs of DeltaTable that keep a table in order: the session's settings, arguments and answers.

Must not live here: what they do (`alluvium.delta.upkeep`, `alluvium.commands`).
"""
