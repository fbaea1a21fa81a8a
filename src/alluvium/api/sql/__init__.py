"""SQL: which statements are ours, and the grammar of those that only Delta knows.

What lives here: text to frozen dataclasses, one module a family of statements, and how text is told apart at its head.
What must not: sessions, tables, plans and verbs. Nothing here asks Spark, so all of it runs without a JVM.
"""
