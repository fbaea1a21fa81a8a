"""Predicates: Spark SQL text to a small tree (the only sqlglot door), columns used, evaluation on rows and on statistics."""
