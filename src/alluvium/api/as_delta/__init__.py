"""In place of delta-spark: modules under its names, and sessions that were configured for its JAR.

Must not live here: what tables can do. Everything here only leads to it.
"""
