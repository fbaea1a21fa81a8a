"""Verbs over rows of Paimon tables: DELETE, UPDATE and MERGE, of keys by upserts, of others by files anew or masks.

Must not live here: how changed rows get into files (`commands.rows`), and what a commit says of them (`paimon`).
"""
