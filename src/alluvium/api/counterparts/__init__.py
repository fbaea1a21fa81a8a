"""What delta-spark calls the errors of ours that it has, too: condition, SQL state, exception class.

Must not live here: errors that only we have, and what raises them. `conditions` is the one table; the doors of Delta's
tables apply it (`raising`), so that below them everything raises `alluvium.errors` alone.
"""
