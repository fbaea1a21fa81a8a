"""Sessions: what one can do, which settings it reads text by, copies of it, and its catalog.

Must not live here: scans and writes.
"""
