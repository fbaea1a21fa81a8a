"""Statements about tables: CREATE, DROP, ALTER, COMMENT, and what DESCRIBE and SHOW answer.

Must not live here: what they change (`delta/description`, `spark/sessions/catalog`).
"""
