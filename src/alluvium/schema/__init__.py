"""Types, fields and their evolution; to and from Arrow and the JSON dialects of the formats.

Pure values. Must not live here: storage, Spark, anything that knows a table.
"""
