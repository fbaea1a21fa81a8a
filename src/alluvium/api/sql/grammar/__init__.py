"""The statements that only Delta knows: text to frozen dataclasses, one module a family of statements.

Must not live here: sessions, tables, plans and verbs. Nothing here asks Spark, so all of it runs without a JVM.
"""
