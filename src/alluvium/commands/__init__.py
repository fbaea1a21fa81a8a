"""Verbs over rows: where an engine and a format meet."""
