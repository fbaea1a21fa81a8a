"""What callers say: their expressions and conditions, resolved, and what holds for one statement.

Must not live here: expressions that a table carries (`spark.values`).
"""
