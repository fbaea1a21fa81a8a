"""What a predicate is for whole files: what may be in them, and what is true of all of their rows.

Must not live here: evaluation on rows, and where statistics come from.
"""
