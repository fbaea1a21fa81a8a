"""Which files hold the changed rows, and which of their rows these are: groups of made-up commits, beside a plain loop."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from alluvium.delta.changes.files import FileGroup, group_changes, keys_of
from alluvium.delta.log.read_changes import CHANGED_FILES, CommitChanges
from alluvium.delta.terms.spec import CommitInfo

METRICS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
WIDE = '{"numRecords":2,"tightBounds":false}'


def vector(name: str | None, **more: Any) -> dict[str, Any] | None:
    if name is None:
        return None
    return {"storageType": "u", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 5, "cardinality": 1, **more}


def files(version: int, *rows: Any) -> pa.Table:
    """Each a path, or a path and its vector; or all that is said of it."""
    told = []
    for row in rows:
        path, masks = row if isinstance(row, tuple) else (row, None)
        said = row if isinstance(row, dict) else {"path": path, "deletionVector": vector(masks)}
        told.append({"size": 1, "partitionValues": [], **said, "version": version})
    return pa.Table.from_pylist(told, CHANGED_FILES)


def commit(
    version: int, added: Any = (), removed: Any = (), recorded: Any = (), info: dict[str, Any] | None = None
) -> CommitChanges:
    tables = [files(version, *rows) for rows in (added, removed, recorded)]
    return CommitChanges(version, *tables, None, None, None if info is None else CommitInfo(info))


def told(groups: tuple[FileGroup, ...]) -> dict[str, tuple[str | None, list[tuple[str, int]], bool]]:
    """By the groups' names: what became of the rows, the files, and whether rows are listed or left."""
    assert len({group.name for group in groups}) == len(groups)
    return {
        group.name: (
            group.change_type,
            sorted(zip(group.files["path"].to_pylist(), group.files["version"].to_pylist(), strict=True)),
            group.keeps_listed,
        )
        for group in groups
    }


def test_keys_tell_files_of_versions_apart() -> None:
    paths, versions = pa.array(["a", "a", "a1", "b"]), pa.array([11, 1, 1, 11], pa.int64())
    keys = keys_of(paths, versions).to_pylist()
    assert len(set(keys)) == 4
    chunked = keys_of(pa.chunked_array([paths.slice(0, 1), paths.slice(1)]), pa.chunked_array([versions]))
    assert chunked.to_pylist() == keys
    assert keys_of(pa.chunked_array([], pa.string()), pa.chunked_array([], pa.int64())).to_pylist() == []


def test_what_was_recorded_is_all_that_counts_of_a_version() -> None:
    """ "If there are `cdc` actions in this version, then read only those" """
    commits = [commit(1, ["a"], ["b"], ["c", "d"]), commit(2, ["e"]), commit(3, [], ["f"]), commit(4)]
    assert told(group_changes(commits)) == {
        "recorded": (None, [("c", 1), ("d", 1)], False),
        "removed": ("delete", [("f", 3)], False),
        "added": ("insert", [("e", 2)], False),
    }
    assert group_changes([commit(1)]) == group_changes([]) == ()


@pytest.mark.parametrize(
    "other", [{}, {"numTargetRowsInserted": "1"}, {"numTargetRowsUpdated": "2"}, {"numTargetRowsDeleted": "3"}]
)
@pytest.mark.parametrize("operation", ["MERGE", "UPDATE"])
def test_a_merge_that_says_that_it_changed_nothing_is_believed(operation: str, other: dict[str, str]) -> None:
    info = {"operation": operation, "operationMetrics": {**dict.fromkeys(METRICS, "0"), **other}}
    found = told(group_changes([commit(1, ["a"], ["b"], info=info), commit(2, ["c"])]))
    believed = operation == "MERGE" and not other
    assert [path for path, _ in found["added"][1]] == (["c"] if believed else ["a", "c"])
    assert ("removed" in found) != believed


@pytest.mark.parametrize("name", METRICS)
def test_a_merge_that_does_not_say_all_is_not_believed(name: str) -> None:
    info = {"operation": "MERGE", "operationMetrics": {other: "0" for other in METRICS if other != name}}
    assert "added" in told(group_changes([commit(1, ["a"], info=info)]))
    assert "added" in told(group_changes([commit(1, ["a"], info={"operation": "MERGE"})]))


def test_rows_that_were_deleted_before_neither_go_nor_come() -> None:
    """Those that the vector does not list, of a file that comes or goes as a whole."""
    commits = [commit(1, ["a", ("b", "v1")], ["c", ("d", "v2"), ("e", "v3")])]
    groups = {group.name: group for group in group_changes(commits)}
    assert told(tuple(groups.values())) == {
        "removed": ("delete", [("c", 1)], False), "removed/masked": ("delete", [("d", 1), ("e", 1)], False),
        "added": ("insert", [("a", 1)], False), "added/masked": ("insert", [("b", 1)], False),
    }  # fmt: skip
    for name, vectors in (
        ("removed", None),
        ("added", None),
        ("removed/masked", ["v2", "v3"]),
        ("added/masked", ["v1"]),
    ):
        found = groups[name].vectors
        assert (None if found is None else [one["pathOrInlineDv"] for one in found.to_pylist()]) == vectors
        assert groups[name].without is None


def test_files_that_stay_with_another_vector() -> None:
    """Rows that the newer one lists more went, rows that it lists less are back; and no others."""
    pairs = {
        "more": (None, "v1"), "less": ("v2", None), "other": ("v3", "v4"), "same": ("v5", "v5"), "none": (None, None),
    }  # fmt: skip
    added = [(path, after) for path, (_, after) in pairs.items()]
    removed = [(path, before) for path, (before, _) in pairs.items()]
    groups = {group.name: group for group in group_changes([commit(1, [*added, "new"], [*reversed(removed), "old"])])}
    assert told(tuple(groups.values())) == {
        "removed": ("delete", [("old", 1)], False), "added": ("insert", [("new", 1)], False),
        "masked": ("delete", [("more", 1), ("other", 1)], True), "unmasked": ("insert", [("less", 1), ("other", 1)], True),
    }  # fmt: skip
    for name, place in (("masked", 1), ("unmasked", 0)):
        group = groups[name]
        assert group.vectors is not None and group.without is not None
        paths = group.files["path"].to_pylist()
        names = [
            [one and one["pathOrInlineDv"] for one in found.to_pylist()] for found in (group.vectors, group.without)
        ]
        assert names[0] == [pairs[path][place] for path in paths]
        assert names[1] == [pairs[path][1 - place] for path in paths]


@pytest.mark.parametrize("member", ["storageType", "pathOrInlineDv", "offset"])
@pytest.mark.parametrize("value", ["other", None])
def test_vectors_are_told_apart_by_what_they_are_known_by(member: str, value: str | None) -> None:
    changed: Any = value if value is None or member != "offset" else 2
    before, after = vector("v"), vector("v", **{member: changed})
    if value is None and member != "offset":
        before, changed = vector("v", **{member: None}), vector("v")
    one = {"path": "a", "deletionVector": before}
    assert set(told(group_changes([commit(1, [{"path": "a", "deletionVector": after}], [one])]))) == (
        set() if after == before else {"masked", "unmasked"}
    )
    assert told(group_changes([commit(1, [one], [one])])) == {}
    # How large it is says nothing.
    larger = {"path": "a", "deletionVector": {**(before or {}), "sizeInBytes": 9, "cardinality": 7}}
    assert told(group_changes([commit(1, [larger], [one])])) == {}


def test_a_file_is_the_same_under_another_spelling_but_not_in_another_version() -> None:
    spelled = commit(1, [("p=%61/f", "v1")], ["p=a/f"])
    assert told(group_changes([spelled])) == {"masked": ("delete", [("p=%61/f", 1)], True)}
    apart = [commit(1, [], ["a"]), commit(2, [("a", "v1")])]
    assert told(group_changes(apart)) == {
        "removed": ("delete", [("a", 1)], False), "added/masked": ("insert", [("a", 2)], False),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("after", "chosen"),
    [
        (WIDE, "after"),
        ('{"tightBounds" : false}', "after"),
        ('{"tightBounds":true}', "before"),
        ("{}", "before"),
        (None, "before"),
    ],
)
@pytest.mark.parametrize("before", ['{"numRecords":9}', None])
def test_statistics_that_hold_for_rows_that_went(after: str | None, chosen: str, before: str | None) -> None:
    """Bounds of rows that are left alone say nothing of them: only those that are called wide, or older ones."""
    removed = {"path": "a", "stats": before}
    added = {"path": "a", "stats": after, "size": 7, "deletionVector": vector("v")}
    (group,) = group_changes([commit(1, [added], [removed])])
    assert group.files["stats"].to_pylist() == [after if chosen == "after" else before]
    assert group.files["size"].to_pylist() == [7]
    # Of rows that are back, which are among those that are left, they hold.
    (back,) = group_changes(
        [commit(1, [{**added, "deletionVector": None}], [{**removed, "deletionVector": vector("v")}])]
    )
    assert (back.name, back.files["stats"].to_pylist()) == ("unmasked", [after])


@pytest.mark.parametrize("seed", range(25))
def test_random_commits_beside_a_loop(seed: int) -> None:
    lot = random.Random(seed)
    commits, expected = [], dict[str, list[tuple[str, int]]]()

    def note(kind: str, path: str, version: int) -> None:
        expected.setdefault(kind, []).append((path, version))

    for version in range(lot.randint(1, 4)):
        names = lot.sample("abcdef", lot.randint(0, 6))
        added = {name: lot.choice([None, "v1", "v2"]) for name in names if lot.random() < 0.6}
        removed = {name: lot.choice([None, "v1", "v2"]) for name in names if lot.random() < 0.6}
        recorded = ["r"] if lot.random() < 0.2 else []
        commits.append(commit(version, [*added.items()], [*removed.items()], recorded))
        if recorded:
            note("recorded", "r", version)
            continue
        for name in names:
            if name in added and name in removed:
                before, after = removed[name], added[name]
                if before != after and after is not None:
                    note("masked", name, version)
                if before != after and before is not None:
                    note("unmasked", name, version)
                continue
            for kind, those in (("added", added), ("removed", removed)):
                if name in those:
                    note(kind + ("/masked" if those[name] is not None else ""), name, version)
    found = {name: paths for name, (_, paths, _) in told(group_changes(commits)).items()}
    assert found == {name: sorted(paths) for name, paths in expected.items()}
