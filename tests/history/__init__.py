"""Writers of several kinds on one table, killed at random, and whether the history that they leave is that of a serial order.

`acts` says what a writer may do, and what must come of it; `writers/` does it by each engine; `contest` starts, kills
and replaces writers; `replay` reads what they left, by pyarrow and the text of the log alone; `judge` compares.

Must not live here: a reader of the project's own in `acts`, `replay` or `judge`: they judge it, and other engines'
Python imports them.
"""
