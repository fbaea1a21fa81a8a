"""What the specification names, as values: documents, properties, names and values of partitions and columns.

Here lives the form of one action, one property, one path, and what follows from it alone. Must not live here: anything
that knows of a log, a version or a file's statistics.
"""
