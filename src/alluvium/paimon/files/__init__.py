"""Manifests and what they say of data files: read, written, merged; partitions, statistics, columns by file.

Must not live here: which snapshot names which manifest (`paimon.log`), and which files a reader wants (`paimon.view`).
"""
