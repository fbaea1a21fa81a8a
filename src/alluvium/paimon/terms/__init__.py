"""What the specification names, as values: documents, options, and how Java writes numbers.

Must not live here: anything that knows of a snapshot or a file.
"""
