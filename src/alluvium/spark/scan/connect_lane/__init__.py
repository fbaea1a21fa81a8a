"""The lane of Spark Connect: the server's own Parquet reader, by public calls of DataFrames alone.

Must not live here: anything that needs a JVM at hand.
"""
