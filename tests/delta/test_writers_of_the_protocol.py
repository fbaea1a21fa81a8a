"""A table that needs a writer that nobody here is: it is read, and every verb refuses it and leaves it as it was."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest

import alluvium
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.commands.rows_here.constraint import add_constraint_here
from alluvium.delta.upkeep.row_id_backfill import backfill_row_ids
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import UnsupportedFeature
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.storage.open import open_store

FEATURE = "tomorrow"
ROWS = pa.table({"id": [7, 8], "p": ["a", "b"]})


@pytest.fixture
def url() -> str:
    """Two commits of rows, and one that adds the feature."""
    url = f"memory://{uuid.uuid4().hex}/t"
    properties = {"delta.enableDeletionVectors": "true", "delta.appendOnly": "false", "delta.checkpointInterval": "100"}
    for ids in ([1, 2], [3]):
        alluvium.write(
            pa.table({"id": ids, "p": ["a"] * len(ids)}), url, mode="append", partition_by=["p"], **properties
        )
    alluvium.DeltaTable.forPath(url).delete("id = 1")
    protocol = load_snapshot(open_store(url)).config.protocol
    action = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(protocol.reader_features or ()),
        "writerFeatures": [*(protocol.writer_features or ()), FEATURE],
    }
    lines = [{"commitInfo": {"timestamp": 1, "operation": "UPGRADE PROTOCOL"}}, {"protocol": action}]
    open_store(url).put(f"_delta_log/{3:020}.json", "\n".join(map(json.dumps, lines)).encode())
    return url


def objects(url: str) -> dict[str, int]:
    return {info.path: info.size for info in open_store(url).list_tree("")}


#: By the table.
VERBS: dict[str, Callable[[PortableDeltaTable], object]] = {
    "append": lambda t: alluvium.write(ROWS, t.path, mode="append"),
    "overwrite": lambda t: alluvium.write(ROWS, t.path, mode="overwrite"),
    "replace rows": lambda t: alluvium.write(ROWS.slice(0, 1), t.path, mode="overwrite", replaceWhere="id > 5"),
    "replace partitions": lambda t: alluvium.write(ROWS.slice(0, 1), t.path, mode="overwrite", replaceWhere="p = 'a'"),
    "delete": lambda t: t.delete("id = 2"),
    "delete all": lambda t: t.delete(),
    "update": lambda t: t.update("id = 2", {"id": "9"}),
    "merge": lambda t: t.merge(ROWS, "t.id = s.id").whenNotMatchedInsertAll().execute(),
    "optimize": lambda t: t.optimize().executeCompaction(),
    "add columns": lambda t: t.alter().add_columns({"x": "int"}),
    "rename a column": lambda t: t.alter().rename_column("id", "x"),
    "set properties": lambda t: t.alter().set_properties({"a.b": "c"}),
    "unset properties": lambda t: t.alter().unset_properties("delta.appendOnly"),
    "add a constraint": lambda t: add_constraint_here(load_snapshot(open_store(t.path)), "c", "id > 0", "tests"),
    "add a feature": lambda t: t.addFeatureSupport("rowTracking"),
    "drop a feature": lambda t: t.dropFeatureSupport("deletionVectors"),
    "upgrade": lambda t: t.upgradeTableProtocol(3, 7),
    "restore": lambda t: t.restoreToVersion(1),
    "vacuum": lambda t: t.vacuum(1000),
    "repair": lambda t: t.repair(),
    "statistics": lambda t: t.compute_statistics(every=True),
    "row ids": lambda t: backfill_row_ids(load_snapshot(open_store(t.path)), "tests", DEFAULT_RETRY),
    "clone": lambda t: t.clone(f"memory://{uuid.uuid4().hex}/copy"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_leaves_it_as_it_was(url: str, verb: str) -> None:
    before = objects(url)
    with pytest.raises(UnsupportedFeature) as caught:
        VERBS[verb](PortableDeltaTable.forPath(url))
    assert (caught.value.code, FEATURE in caught.value.features) == ("unsupported-feature", True)
    assert (caught.value.url, caught.value.version) == (url, 3)
    assert objects(url) == before
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("shallow", [False, True])
@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_is_cloned_over_it(url: str, shallow: bool, dry_run: bool) -> None:
    source = f"memory://{uuid.uuid4().hex}/source"
    alluvium.write(ROWS, source, partition_by=["p"])
    before = objects(url)
    with pytest.raises(UnsupportedFeature) as caught:
        PortableDeltaTable.forPath(source).clone(url, shallow, replace=True, dry_run=dry_run)
    assert (caught.value.code, FEATURE in caught.value.features) == ("unsupported-feature", True)
    assert objects(url) == before


def test_a_version_that_needs_it_is_not_gone_back_to(url: str) -> None:
    """The state that would come back needs the writer, though the newest one does not."""
    store = open_store(url)
    first = load_snapshot(store, 1).config.protocol
    plain = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": list(first.reader_features or ()),
             "writerFeatures": list(first.writer_features or ())}  # fmt: skip
    store.put(f"_delta_log/{4:020}.json", json.dumps({"protocol": plain}).encode())
    table = PortableDeltaTable.forPath(url)
    table.update("id = 2", {"id": "9"})
    before = objects(url)
    with pytest.raises(UnsupportedFeature) as caught:
        table.restoreToVersion(3)
    assert FEATURE in caught.value.features and objects(url) == before
