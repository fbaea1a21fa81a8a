"""Capabilities of Paimon tables, one module each."""
