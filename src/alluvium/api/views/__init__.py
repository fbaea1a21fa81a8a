"""What users see of a table, whichever format it is of: its history, its schema, how a read is carried out.

Must not live here: where that comes from (`api/delta`, `api/paimon`).
"""
