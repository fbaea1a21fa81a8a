"""What is left to say of entries: beside a plain dict of what is live, whatever came before and comes afterwards."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.paimon.files.manifest_merge import remaining_entries
from alluvium.paimon.terms.spec import ENTRIES

LOOSE = pa.schema([f.with_nullable(True) for f in ENTRIES])
FILES = st.tuples(
    st.sampled_from([b"", b"p"]), st.integers(0, 1), st.integers(0, 1), st.sampled_from(["a", "b"]),
    st.sampled_from([None, "", "s3://x"]),
)  # fmt: skip


def table(entries: list[tuple[int, Any]]) -> pa.Table:
    rows = [
        {"kind": kind, "partition": p, "bucket": b, "level": level, "file_name": name, "external_path": external}
        for kind, (p, b, level, name, external) in entries
    ]
    return pa.Table.from_pylist([{f.name: row.get(f.name) for f in LOOSE} for row in rows], LOOSE)


def told(entries: pa.Table) -> list[tuple[int, Any]]:
    names = ("partition", "bucket", "level", "file_name", "external_path")
    return [(row["kind"], tuple(row[name] for name in names)) for row in entries.to_pylist()]


def live(before: set[Any], entries: list[tuple[int, Any]]) -> set[Any]:
    found = set(before)
    for kind, (*place, external) in entries:
        file = (*place, external or "")
        found.discard(file) if kind else found.add(file)
    return found


@settings(max_examples=60, derandomize=True)
@given(st.lists(FILES, max_size=12), st.sets(FILES, max_size=6))
def test_what_is_live_stays_so(files: list[Any], before: set[Any]) -> None:
    """Each file comes and goes by turns; what is said twice of a file is said once, or not at all."""
    state, entries = {(*place, external or "") for *place, external in before}, []
    known = set(state)
    for file in files:
        key = (*file[:-1], file[-1] or "")
        entries.append((int(key in known), file))
        known = known - {key} if key in known else known | {key}
    left = told(remaining_entries(table(entries)))
    assert live(state, left) == live(state, entries) == known
    # In order, and nothing that is not there; of each file a deletion of what was before, and what it is in the end.
    places = iter(entries)
    assert all(one in places for one in left)
    keys = [(*file[:-1], file[-1] or "") for _, file in entries]
    wanted = []
    for n, (kind, _) in enumerate(entries):
        is_first, is_last = keys[n] not in keys[:n], keys[n] not in keys[n + 1 :]
        if (kind == 1 and is_first) or (kind == 0 and is_last):
            wanted.append(entries[n])
    assert left == wanted


def test_nothing_to_take_back_is_left_as_it_is() -> None:
    entries = table([(0, (b"", 0, 0, "a", None)), (0, (b"", 0, 0, "a", None))])
    assert remaining_entries(entries) is entries
    assert remaining_entries(table([])).num_rows == 0
