"""Verbs over rows of a table, as text that every engine of ours takes, and what is compared after them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import alluvium

# Of NaN no file has bounds that readers of others trust.
ROWS = pa.table({
    "id": range(40),
    "p": [f"p{i % 3}" if i % 8 else None for i in range(40)],
    "v": [None if i % 7 == 0 else i * 3 % 11 for i in range(40)],
    "x": [float("nan") if i % 9 == 0 else i / 4 for i in range(40)],
    "t": ["ab" * (i % 4) for i in range(40)],
})  # fmt: skip
SOURCE = pa.table({
    "id": [1, 2, 3, 14, 50, 51, 52],
    "p": ["p1", "new", None, "p0", "p9", None, "p1"],
    "v": [None, 5, 100, 7, 8, 9, None],
    "x": [0.5, float("nan"), None, 1.0, 2.0, 3.0, 4.0],
    "t": ["", "a", None, "ab", "abab", "q", "z"],
})  # fmt: skip
KINDS = {
    "plain": {},
    "all": {
        "delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true",
    },
    "feed": {"delta.enableChangeDataFeed": "true"},
}  # fmt: skip
#: Of the history: what says how long it took, or how large files of another writer are.
_OTHER = (
    "TimeMs",
    "Bytes",
    "BytesAdded",
    "BytesRemoved",
    "numAddedBytes",
    "numRemovedBytes",
    "numAddedFiles",
    "numFiles",
    "numTargetFilesAdded",
    "numAddedChangeFiles",
    "numTargetChangeFilesAdded",
)

Verb = Callable[[Any, Any], Any]
VERBS: dict[str, Verb] = {
    "delete few": lambda t, s: t.delete("v = 3 or id = 17"),
    "delete none": lambda t, s: t.delete("id > 1000"),
    "delete a partition": lambda t, s: t.delete("p = 'p1'"),
    "delete null": lambda t, s: t.delete("p is null and not (v > 3)"),
    "delete all": lambda t, s: t.delete(),
    "delete text": lambda t, s: t.delete("t like 'ab%' and length(t) > 2"),
    "delete nan": lambda t, s: t.delete("x > 9"),
    "update": lambda t, s: t.update("v % 2 = 0", {"v": "v + 1", "t": "concat(t, '-', cast(id as string))"}),
    "update all": lambda t, s: t.update(set={"x": "x * 2"}),
    "update a partition": lambda t, s: t.update("p = 'p2'", {"p": "case when id > 20 then 'q' else p end"}),
    "update none": lambda t, s: t.update("t = 'nothing'", {"v": "1"}),
    "upsert": lambda t, s: t.merge(s, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
    "clauses": lambda t, s: (
        t.merge(s, "t.id = s.id and t.v >= 0")
        .whenMatchedDelete("s.v is null")
        .whenMatchedUpdate("s.x > 0.7", {"x": "s.x", "t": "s.t"})
        .whenMatchedUpdate(set={"v": "t.v + 100"})
        .whenNotMatchedInsert("s.id > 51", {"id": "s.id", "t": "'last'"})
        .whenNotMatchedInsertAll("s.v = 8")
        .execute()
    ),
    "lonely": lambda t, s: (
        t.merge(s, "t.id = s.id")
        .whenMatchedDelete()
        .whenNotMatchedBySourceUpdate("t.v > 8", {"t": "'lonely'"})
        .whenNotMatchedBySourceDelete("t.v < 2")
        .execute()
    ),
    "inserts": lambda t, s: t.merge(s, "t.id = s.id").whenNotMatchedInsertAll().execute(),
    "no match": lambda t, s: t.merge(s, "t.id = s.id + 1000").whenMatchedUpdateAll().execute(),
}


def rows(url: str) -> list[str]:
    return sorted(map(repr, alluvium.open(url).to_arrow().to_pylist()))


def told(url: str) -> tuple[str, dict[str, str], Any]:
    newest = alluvium.open(url).history(1)[0]
    metrics = {k: v for k, v in (newest["operationMetrics"] or {}).items() if not k.endswith(_OTHER)}
    return newest["operation"], metrics, newest["version"]


def changes(url: str) -> list[str]:
    t = alluvium.open(url)
    if "delta.enableChangeDataFeed" not in t.properties:
        return []
    return sorted(repr({k: v for k, v in c.items() if k != "_commit_timestamp"}) for c in t.changes(1).to_pylist())


def make_begun(root: Path) -> Path:
    """Tables of four files each, in partitions and not."""
    for kind, properties in KINDS.items():
        for names in ((), ("p",)):
            for start in range(0, 40, 10):
                url = root / f"{kind}{len(names)}"
                alluvium.write(ROWS.slice(start, 10), url, mode="append", partition_by=names, **properties)
    return root


def kept_ids(url: str, kind: str) -> list[tuple[int, int]]:
    """Of rows that were there before, for those that came have other ids where their files have another order."""
    if kind != "all":
        return []
    found = alluvium.open(url).to_arrow(columns=["id", "_row_id"]).to_pylist()
    return sorted((r["id"], r["_row_id"]) for r in found if r["id"] < 40)
