"""Avro container files: schemas, blocks, records to Arrow and back.

Must not live here: what the records mean.
"""
