"""What runs in Spark's Python workers: files written there, and the errors that come back.

Must not live here: what needs the driver's session.
"""
