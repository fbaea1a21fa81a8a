"""What a table says of itself, made and changed: schema, properties, protocol.

Must not live here: the meaning of a feature (`delta.features`), and anything that touches rows.
"""
