"""SQL of a Spark Connect session: no parser of Spark's is at hand, so we read the text; rows are the server's.

Must not live here: what statements do, which is that of classic sessions (`api/sql/upkeep`, `api/sql/rows`).
"""
