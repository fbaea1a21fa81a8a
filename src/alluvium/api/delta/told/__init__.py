"""What a Delta table tells of itself, in the columns that users see: its detail, its metadata and tables about it.

Must not live here: how it is found out (`delta/view`), and DataFrames of it (`delta_views`).
"""
