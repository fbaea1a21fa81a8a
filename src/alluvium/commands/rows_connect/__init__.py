"""Rows changed over Spark Connect: DELETE, UPDATE and MERGE by public calls alone, the server's jobs, and our commit.

What becomes of which row is said by frames, as on a classic session, and applied by the same rooms (`commands.rows`);
other is how expressions are understood: the server is asked what it makes of them, and shows no trees.

Must not live here: how changed rows get into a table, and anything that asks a driver's JVM.
"""
