"""Spark SQL text: to trees, and as the text that a table carries. The only room that knows sqlglot.

Must not live here: what an expression comes to on values.
"""
