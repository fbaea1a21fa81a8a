"""One version of a table, as it is read: its state, the plan of its rows, and what is known without them.

Must not live here: anything that changes a table, and anything about more than one version but the history.
"""
