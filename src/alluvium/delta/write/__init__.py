"""Rows into a table: the plan of their files, and the target that commits them.

Must not live here: writing of files (engines do that from plans), and changes of the table's description.
"""
