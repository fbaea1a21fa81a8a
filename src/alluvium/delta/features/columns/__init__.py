"""Features about what stands in a column: its name in files, its defaults, its generation, its conditions.

One module an entry of the specification, and what two entries share. Must not live here: features about types or rows.
"""
