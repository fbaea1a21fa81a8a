"""Vectors of which nobody can say what they delete, and numbers of rows that contradict them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.maintenance import check_table
from alluvium.codecs.z85 import format_z85
from alluvium.errors import CorruptTable


def described(rows: list[int], **changes: object) -> dict[str, object]:
    data = (1_681_511_377).to_bytes(4, "little") + BitMap64(rows).serialize()
    text = format_z85(data + bytes(-len(data) % 4))
    said = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}
    return {**said, **changes}


def relogged(path: Path, vectors: Sequence[dict[str, object] | None], **kept: object) -> dict[str, Any]:
    """A table of five rows in one file, which a commit for each of the vectors adds (again) with it.

    Gives the `add` as it was written. `kept` replaces members of the protocol.
    """
    alluvium.write(pa.table({"id": range(5)}), path, **{"delta.enableDeletionVectors": "true"})
    log = path / "_delta_log"
    first = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    (add,) = (action["add"] for action in first if "add" in action)
    rest = [{"protocol": kept} if kept and "protocol" in a else a for a in first if "add" not in a]
    for version, vector in enumerate(vectors):
        again = {"add": add if vector is None else {**add, "deletionVector": vector}}
        actions = [again] if version else [*rest, again]
        (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))
    for crc in log.glob("*.crc"):
        crc.unlink()
    return add


@pytest.mark.parametrize("vectors", [[None, [0]], [[0], [1, 2]], [[0], None]])
def test_a_file_that_is_live_twice_is_refused(tmp_path: Path, vectors: list[list[int] | None]) -> None:
    """ "Files are uniquely identified by path and dvId": a writer that adds one anew without a remove leaves two, and
    of a plan's paths nobody could tell whose rows are meant.
    """
    add = relogged(tmp_path / "t", [rows and described(rows) for rows in vectors])
    table = alluvium.open(tmp_path / "t")
    delete = partial(DeltaTable.forPath(tmp_path / "t").delete, "id = 4")
    for ask in (table.to_arrow, table.count, partial(table.count, "id > 1"), partial(table.bounds, ["id"]), delete):
        with pytest.raises(CorruptTable) as caught:
            ask()
        assert (caught.value.code, caught.value.path) == ("damaged-deletion-vector", add["path"])
        assert caught.value.version == 1
    found = [f for f in check_table(str(tmp_path / "t")) if f.level == "error"]
    assert [(f.check, f.path) for f in found] == [("deletion-vectors", add["path"])]
    assert "live with several" in found[0].message


def test_a_vector_without_its_feature_is_refused(tmp_path: Path) -> None:
    """Engines that go by the protocol show the rows that it deletes, others do not: nobody knows who is right."""
    add = relogged(tmp_path / "t", [described([0])], minReaderVersion=1, minWriterVersion=2)
    table = alluvium.open(tmp_path / "t")
    for ask in (table.to_arrow, table.count, partial(table.to_arrow, where="id = 4")):
        with pytest.raises(CorruptTable) as caught:
            ask()
        assert (caught.value.code, caught.value.path) == ("unsupported-deletion-vector", add["path"])
    assert any("does not have the feature" in f.message for f in check_table(str(tmp_path / "t")))


@pytest.mark.parametrize("records", [2, 3])
def test_a_number_of_rows_that_is_wrong_hides_none(tmp_path: Path, records: int) -> None:
    """A file stays whose statistic says that its vector deletes all it has: it may have more."""
    relogged(tmp_path / "t", [described([0, 1])])
    log = tmp_path / "t/_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace('\\"numRecords\\":5', f'\\"numRecords\\":{records}'))
    table = alluvium.open(tmp_path / "t")
    assert table.count() == records - 2
    for where in (None, "id >= 0", "id is not null", "id in (2, 3, 4)"):
        assert table.to_arrow(where=where)["id"].to_pylist() == [2, 3, 4]
    DeltaTable.forPath(tmp_path / "t").delete("id = 4")
    assert alluvium.open(tmp_path / "t").to_arrow()["id"].to_pylist() == [2, 3]
