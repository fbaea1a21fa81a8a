"""Work on a table that adds no rows: which files are compacted, and what comes in their place.

Must not live here: reading and writing of rows; rules of what a table's rows mean.
"""
