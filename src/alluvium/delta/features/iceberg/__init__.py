"""Features that keep a table readable as Iceberg.

One module an entry of the specification, and the rules that versions share. Must not live here: Iceberg's own metadata.
"""
