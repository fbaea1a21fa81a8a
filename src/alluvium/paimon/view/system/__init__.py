"""System tables: what Paimon's `t$name` show of a table and its files, by metadata alone.

Must not live here: rows of the table itself, whose plans are the view's.
"""
