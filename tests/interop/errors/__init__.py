"""Calls that engines refuse, written once and made in both; nothing of the project is imported here."""
