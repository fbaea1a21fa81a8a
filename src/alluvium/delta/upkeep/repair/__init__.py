"""Repair: what damage the log can be rid of, and what it cannot.

Must not live here: how damage is found (`checkup` and its like, one floor up).
"""
