"""Views for engines of others, which read them lazily: Polars, DuckDB. What they ask for is handed to our reader.

Must not live here: how rows are read (`portable`), and what a format is (`api/delta`, `api/paimon`).
"""
