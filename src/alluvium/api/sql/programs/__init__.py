"""Statements that hold others: scripts, and EXECUTE IMMEDIATE.

Must not live here: what the statements within do; each goes to the front again.
"""
