"""SQL: which statements are ours, and the grammar of those that only Delta knows.

What lives here: text to frozen dataclasses, one module a family of statements, and how text is told apart at its head.
Must not live here: sessions, tables, plans and verbs. Nothing here asks Spark, so all of it runs without a JVM.
"""
