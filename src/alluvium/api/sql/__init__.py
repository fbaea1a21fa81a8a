"""SQL: which statements are ours, and what each of them calls.

What lives here: `kinds` tells at a statement's head who reads it; `grammar/` reads those that only Delta knows, `text/`
the words below that; `front` takes the statements of a session, and a module a family (`rows/`, `tables/`, `upkeep/`)
turns one that has been read into a call of the same verb that Python calls.
Must not live here: what a verb does. A statement that is none of ours goes to Spark as it came.
"""
