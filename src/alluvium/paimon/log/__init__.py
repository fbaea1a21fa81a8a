"""The log of a table: its snapshots, tags, branches and schema files, found, read and told.

Must not live here: plans of what is read (`paimon.view`), and publishing of snapshots (`paimon.commit`).
"""
