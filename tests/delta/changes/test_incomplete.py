"""What a remove does not say of its file is looked up where the file was added."""

from __future__ import annotations

from typing import Any, NoReturn

import pyarrow as pa
import pytest

from alluvium.delta.changes.files import FileGroup
from alluvium.delta.changes.incomplete import complete_removes
from alluvium.delta.log.read_changes import CHANGED_FILES
from alluvium.errors import CorruptTable

WHOLE: dict[str, Any] = {"size": 5, "partitionValues": [("p", "1")], "stats": '{"numRecords":1}'}


def files(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{"version": 3, **row} for row in rows], CHANGED_FILES)


def group(name: str, change_type: str | None, *rows: dict[str, Any]) -> FileGroup:
    return FileGroup(name, change_type, files(*rows))


def older(*rows: dict[str, Any]) -> Any:
    return lambda: files(*rows)


def never() -> NoReturn:
    raise AssertionError("nothing is looked for")


def described(found: FileGroup) -> dict[str, tuple[Any, ...]]:
    return {row["path"]: (row["size"], row["partitionValues"], row["stats"]) for row in found.files.to_pylist()}


@pytest.mark.parametrize(
    ("change_type", "row"),
    [
        ("delete", WHOLE), ("delete", {**WHOLE, "stats": None}), ("insert", {"size": None}), (None, {"partitionValues": None}),
    ],
)  # fmt: skip
def test_what_is_whole_or_no_remove_is_left_as_it_is(change_type: str | None, row: dict[str, Any]) -> None:
    groups = (group("g", change_type, {"path": "a", **row}),)
    assert complete_removes(groups, files(), never) is groups
    assert complete_removes((), files(), never) == ()


@pytest.mark.parametrize("lacking", ["size", "partitionValues"])
def test_what_is_not_said_is_looked_up_and_what_is_said_stays(lacking: str) -> None:
    said = {**WHOLE, "size": 9, "partitionValues": [("p", "2")], "stats": None, lacking: None}
    removed = group("removed", "delete", {"path": "old", **said}, {"path": "whole", **WHOLE}, {"path": "new", **said})
    kept = group("added", "insert", {"path": "x"})
    known = {"path": "old", **WHOLE}, {"path": "whole", "size": 1, "partitionValues": [], "stats": None}
    found = complete_removes((removed, kept), files({"path": "new", **WHOLE, "size": 6}), older(*known))
    assert found[1] is kept
    assert (found[0].name, found[0].files.schema) == ("removed", CHANGED_FILES)
    size = {"old": 5, "new": 6} if lacking == "size" else {"old": 9, "new": 9}
    values = [("p", "1")] if lacking == "partitionValues" else [("p", "2")]
    assert described(found[0]) == {
        **{path: (size[path], values, WHOLE["stats"]) for path in ("old", "new")},
        "whole": (5, [("p", "1")], WHOLE["stats"]),
    }


def test_what_stood_before_comes_first() -> None:
    """A file that was live before the range, and comes back within it under its name, is the same file."""
    removed = group("removed", "delete", {"path": "p=%61/f"})
    found = complete_removes(
        (removed,), files({"path": "p=a/f", **WHOLE, "size": 6}), older({"path": "p=a/f", **WHOLE})
    )
    assert described(found[0]) == {"p=%61/f": (5, [("p", "1")], WHOLE["stats"])}


def test_a_file_that_nobody_added() -> None:
    removed = group("removed", "delete", {"path": "known"}, {"path": "gone"}, {"path": "gone too"})
    with pytest.raises(CorruptTable) as caught:
        complete_removes((removed,), files({"path": "known", **WHOLE}), older())
    assert (caught.value.code, caught.value.path) == ("unknown-file-removed", "gone")


def test_vectors_and_versions_stay() -> None:
    removed = group("removed", "delete", {"path": "a", "version": 7, "modificationTime": 4})
    (found,) = complete_removes((removed,), files({"path": "a", **WHOLE, "modificationTime": 9}), older())
    (row,) = found.files.to_pylist()
    assert (row["version"], row["modificationTime"], row["deletionVector"]) == (7, 4, None)
