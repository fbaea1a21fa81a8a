"""Tables that are made or put in the place of others, in one way for builders, writers and statements.

Must not live here: how a table is asked for (`delta_table_builder`, `api.names`, `api.sql.tables`).
"""
