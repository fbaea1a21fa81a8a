"""One version of a table, as it is read: its files, the plan of its rows, and what is known without them.

Must not live here: anything that changes a table.
"""
