"""The JVM behind a classic session: its classes, its calls back, Catalyst's expressions, errors that cross it.

Must not live here: anything that Spark Connect could do as well by public calls.
"""
