"""What is said of rows that are written, and the table that they go to; by a session or without one.

Must not live here: pyspark, and who writes the rows.
"""
