"""Streams over Spark Connect: the client says what each batch reads, and the server computes it as any query.

Nothing of ours is on the server, so it cannot ask us for offsets and rows as a driver does; and state that a query
keeps from batch to batch is the server's alone. So only queries without state run here.

Must not live here: a word of any format, what a batch is written by.
"""
