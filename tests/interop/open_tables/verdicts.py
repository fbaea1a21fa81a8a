"""Where another reader does not read what we wrote: what it says, and why that is right or its own fault.

A refusal of a table that is not listed fails the test, and so does an entry that is not met any more.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What a reader makes of tables, in their newest version and perhaps in others.

    Attributes:
        reader: Which one.
        tables: Of which tables.
        said: A pattern of its own message; or of `rows: ours | theirs` or `types: ours | theirs`, where it reads otherwise.
        why: What lies behind it.
    """

    reader: str
    tables: tuple[str, ...]
    said: str
    why: str


#: Features that the reader does not know, and says so.
REFUSED: tuple[Verdict, ...] = ()

#: Rows that it reads wrongly: delta-spark reads ours, and this reader misreads delta-spark's own tables just so.
WRONG: tuple[Verdict, ...] = ()
