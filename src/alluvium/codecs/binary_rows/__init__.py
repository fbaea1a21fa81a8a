"""Paimon's BinaryRow: rows of bytes to Arrow columns and back, and its hash.

Must not live here: what the rows mean.
"""
