"""Delta tables as sources and sinks of Structured Streaming: options checked, tables and proxies tied.

Must not live here: proxies of the JVM (`spark.streams`), which files a batch has (`delta.streams`), writes.
"""
