"""The text of a statement: tokens, literals, names, a cursor over them, and the error of what is no statement.

Must not live here: what a statement says: each family has its module in `api.sql`.
"""
