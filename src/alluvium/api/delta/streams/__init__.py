"""Delta tables as streams: sources and sinks of Structured Streaming, and followed without Spark (`follow`).

Must not live here: proxies of the JVM (`spark.streams`), which files a batch has (`delta.streams`), writes.
"""
