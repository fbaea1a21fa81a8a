"""Features that bring a type, or let one be exchanged for another.

One module an entry of the specification. Must not live here: the types themselves (`alluvium.schema`).
"""
