"""What the history and errors say of features that leave, and what the last commit leaves behind."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.delta.commit.draft import Draft
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import list_log
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import DomainMetadata
from alluvium.delta.upkeep.drop.drop_feature import drop_feature
from alluvium.delta.upkeep.drop.removals import without_mapping
from alluvium.delta.upkeep.row_id_backfill import needs_row_ids
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.delta.write.target import DeltaTarget, publish
from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.plan.changes import Describe, Operation, Preview, ReadScope
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore


def create(properties: Mapping[str, str]) -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex, "t")
    config = table_config(NewTable(SCHEMA, properties=properties))
    DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    commit_rows(open_target(store), [1, 2])
    return store


def entry(store: Store, version: int) -> dict[str, Any]:
    lines = map(json.loads, store.get(commit_path(version)).splitlines())
    return {kind: value for line in lines for kind, value in line.items()}


def parameters(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Of each operation those of its commits, from version 2 on."""
    found: dict[str, list[dict[str, Any]]] = {}
    for version in range(2, load_snapshot(store).version + 1):
        info = entry(store, version)["commitInfo"]
        found.setdefault(info["operation"], []).append(info["operationParameters"])
    return found


def said(store: Store) -> dict[str, list[dict[str, Any]]]:
    """The same, what is JSON in texts decoded."""
    return {
        name: [{k: json.loads(v) if k in ("properties", "columns") else v for k, v in one.items()} for one in every]
        for name, every in parameters(store).items()
    }


@pytest.mark.parametrize(
    ("feature", "properties", "told"),
    [
        ("rowTracking", {"delta.enableRowTracking": "true"},
         {"SET TBLPROPERTIES": {"properties": {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}}}),
        ("v2Checkpoint", {"delta.checkpointPolicy": "v2"},
         {"SET TBLPROPERTIES": {"properties": {"delta.checkpointPolicy": "classic"}}}),
        ("deletionVectors", {"delta.enableDeletionVectors": "true"},
         {"UNSET TBLPROPERTIES": {"properties": ["delta.enableDeletionVectors"], "ifExists": True}}),
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"},
         {"UNSET TBLPROPERTIES": {"properties": ["delta.enableInCommitTimestamps"], "ifExists": True}}),
        ("vacuumProtocolCheck", {"delta.feature.vacuumProtocolCheck": "supported"}, {}),
        ("typeWidening", {"delta.feature.typeWidening": "supported"}, {}),
    ],
)  # fmt: skip
def test_how_its_use_ends(feature: str, properties: dict[str, str], told: dict[str, Any]) -> None:
    """As the reference's history has it; nothing is said where the table has none of its properties."""
    store = create(properties)
    drop_feature(load_snapshot(store), feature, "an engine")
    found = {name: every for name, every in said(store).items() if name.endswith("TBLPROPERTIES")}
    assert found == {name: [one] for name, one in told.items()}
    engines = {entry(store, v)["commitInfo"]["engineInfo"] for v in range(2, load_snapshot(store).version + 1)}
    assert engines == {"an engine"}
    barriers = parameters(store).get("Empty Commit", [])
    hides = feature not in ("rowTracking", "inCommitTimestamp")
    assert barriers == ([{}] * 3 if hides else [])


@pytest.mark.parametrize("feature", ["deletionVectors", "rowTracking"])
def test_a_dry_run_shows_the_table_afterwards(feature: str) -> None:
    store = create({f"delta.enable{feature[0].upper()}{feature[1:]}": "true", "mine": "1"})
    shown = drop_feature(load_snapshot(store), feature, "an engine", dry_run=True)
    assert isinstance(shown, Preview) and load_snapshot(store).version == 1
    assert (shown.operation.name, shown.operation.engine) == ("DROP FEATURE", "an engine")
    assert shown.operation.parameters == {"featureName": feature, "truncateHistory": False}
    protected = shown.differences.get("property delta.requireCheckpointProtectionBeforeVersion")
    assert protected == ((None, "2") if feature == "deletionVectors" else None)
    assert "property mine" not in shown.differences and feature not in str(shown.differences["protocol"][1])
    if feature == "deletionVectors":
        cut = drop_feature(load_snapshot(store), feature, "an engine", dry_run=True, truncate=True)
        assert isinstance(cut, Preview) and cut.operation.parameters["truncateHistory"] is True
        assert "property delta.requireCheckpointProtectionBeforeVersion" not in cut.differences


def with_domain(store: Store, name: str, removed: bool = False) -> None:
    base = load_snapshot(store)
    domain = DomainMetadata(domain=name, configuration="{}", removed=removed)
    draft = Draft(Actions(domains=(domain,)), ReadScope.nothing(), Operation("TEST"), base.version)
    publish(store, draft, base, DEFAULT_RETRY)


def test_what_is_in_use_is_named() -> None:
    constrained = create({"delta.constraints.b": "id > 0", "delta.constraints.a": "id < 9"})
    owned = create({"delta.feature.domainMetadata": "supported"})
    for name in ("z.mine", "a.mine"):
        with_domain(owned, name)
    mapped = create({"delta.columnMapping.mode": "name"})
    widened = create({"delta.enableTypeWidening": "true"})
    alluvium.alter(widened.url).add_columns({"n": "int", "m": "int"})
    for name in "nm":
        alluvium.alter(widened.url).alter_column(name, type="bigint")
    for store, feature, problem in (
        (constrained, "checkConstraints", "there are constraints: a, b"),
        (owned, "domainMetadata", "there are domains: a.mine, z.mine"),
        (mapped, "columnMapping", "files know columns by other names: id, p"),
        (widened, "typeWidening", "types were widened: n, m"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            drop_feature(load_snapshot(store), feature, "test")
        assert caught.value.code == "feature-in-use" and caught.value.hint
        assert str(caught.value).startswith(f"the feature {feature} is in use: {problem}")
    for name in ("z.mine", "a.mine"):
        with_domain(owned, name, removed=True)
    drop_feature(load_snapshot(owned), "domainMetadata", "test")
    assert load_snapshot(owned).config.protocol.min_writer_version == 2


def test_checkpoints_are_protected_as_long_as_what_they_hide() -> None:
    store = create({"delta.feature.vacuumProtocolCheck": "supported"})
    drop_feature(load_snapshot(store), "vacuumProtocolCheck", "test")
    snapshot = load_snapshot(store)
    assert snapshot.config.metadata.configuration == {"delta.requireCheckpointProtectionBeforeVersion": "5"}
    for version in range(5):
        with pytest.raises(InvalidRequest, match=f"before version 5 are protected, and versions from {version} on"):
            drop_feature(load_snapshot(store), "checkpointProtection", "test")
        store.delete(commit_path(version))
    drop_feature(load_snapshot(store), "checkpointProtection", "test")
    config = load_snapshot(store).config
    assert config.metadata.configuration == {} and config.protocol.writer_features is None


class Rewriting:
    """Notes which files were to be written anew, and under which description; commits that alone."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], TableConfig, Operation]] = []

    def __call__(self, snapshot: Snapshot, files: pa.Table, config: TableConfig, operation: Operation) -> Snapshot:
        self.asked.append((files["path"].to_pylist(), config, operation))
        DeltaTarget(snapshot.store, config, snapshot).commit(Describe(operation, ReadScope.nothing()))
        return load_snapshot(snapshot.store)


def test_files_and_names_change_together_where_mapping_goes() -> None:
    store = create({"delta.columnMapping.mode": "name", "mine": "1"})
    before = load_snapshot(store)
    rewrite = Rewriting()
    drop_feature(before, "columnMapping", "an engine", rewrite=rewrite)
    ((paths, config, operation),) = rewrite.asked
    assert paths == before.files["path"].to_pylist()
    assert (operation.name, operation.parameters, operation.engine) == ("REMOVE COLUMN MAPPING", {}, "an engine")
    assert config.mapping_mode == "none" and config.schema == SCHEMA and config == without_mapping(before.config)
    assert config.metadata.configuration == {"mine": "1"}
    last = load_snapshot(store).config
    assert "columnMapping" not in (last.protocol.writer_features or ()) and last.schema == SCHEMA


@pytest.mark.parametrize("change", ["dropped", "dropped last", "dropped within", "by id"])
def test_files_that_may_have_other_columns_than_their_names_tell(change: str) -> None:
    """A later column of the name would show the values of one that was dropped; by ids, names are what they like."""
    store = MemoryStore(uuid.uuid4().hex, "t")
    columns = {"id": pa.array([1]), "b": pa.array(["secret"]), "s": pa.array([{"x": 1, "y": 2}])}
    order = {"dropped": ["b", "id", "s"], "dropped last": ["id", "s", "b"]}.get(change, ["id", "b", "s"])
    alluvium.write(pa.table({name: columns[name] for name in order}), store.url)
    alluvium.alter(store.url).set_properties({"delta.columnMapping.mode": "name"})
    if change == "by id":
        # As tables of Iceberg are taken over.
        base = load_snapshot(store)
        said = {**base.config.metadata.configuration, "delta.columnMapping.mode": "id"}
        actions = Actions(metadata=msgspec.structs.replace(base.config.metadata, configuration=said))
        draft = Draft(actions, ReadScope.nothing(), Operation("TEST"), base.version)
        publish(store, draft, base, DEFAULT_RETRY)
    else:
        alluvium.alter(store.url).drop_columns("s.y" if change == "dropped within" else "b")
    before = load_snapshot(store)
    with pytest.raises(InvalidRequest) as caught:
        drop_feature(before, "columnMapping", "test")
    said = "by ids" if change == "by id" else "that were dropped"
    assert caught.value.code == "feature-in-use" and said in caught.value.message
    rewrite = Rewriting()
    drop_feature(before, "columnMapping", "test", rewrite=rewrite)
    ((paths, config, _),) = rewrite.asked
    assert paths == before.files["path"].to_pylist() and config == without_mapping(before.config)


def test_names_that_only_mapping_allows_keep_it() -> None:
    store = create({"delta.columnMapping.mode": "name"})
    alluvium.alter(store.url).rename_column("p", "a b")
    config = load_snapshot(store).config
    with pytest.raises(InvalidRequest):
        without_mapping(config)
    rewrite = Rewriting()
    version = load_snapshot(store).version
    with pytest.raises(InvalidRequest):
        drop_feature(load_snapshot(store), "columnMapping", "test", rewrite=rewrite)
    assert rewrite.asked == [] and load_snapshot(store).version == version


def test_changes_of_types_are_told_of_columns_that_are_forgotten() -> None:
    store = create({"delta.enableTypeWidening": "true"})
    alluvium.alter(store.url).add_columns({"n": "int"})
    alluvium.alter(store.url).alter_column("n", type="bigint")
    rewrite = Rewriting()
    drop_feature(load_snapshot(store), "typeWidening", "an engine", rewrite=rewrite)
    first, last = said(store)["DROP FEATURE"]
    (column,) = first["columns"]
    assert (column["name"], column["type"]) == ("n", "long") and "delta.typeChanges" in column["metadata"]
    assert last == {"featureName": "typeWidening", "truncateHistory": False} and rewrite.asked == []


def test_one_checkpoint_is_enough_where_history_goes() -> None:
    """The call that ends its use is refused, for the versions before are young."""
    store = create(
        {"delta.enableDeletionVectors": "true", "delta.dropFeatureTruncateHistory.retentionDuration": "interval 1 day"}
    )
    with pytest.raises(InvalidRequest) as caught:
        drop_feature(load_snapshot(store), "deletionVectors", "test", truncate=True)
    assert caught.value.code == "feature-in-history" and "version 0 needs it" in str(caught.value)
    newest = load_snapshot(store)
    assert list(list_log(store).checkpoints) == [newest.version] and len(parameters(store)["Empty Commit"]) == 1
    assert "deletionVectors" in (newest.config.protocol.writer_features or ())


def test_the_last_commit_follows_no_other() -> None:
    """Any row of others may bring the feature back."""
    store = create({"delta.feature.checkConstraints": "supported"})
    late = load_snapshot(store)
    commit_rows(open_target(store), [3])
    with pytest.raises(CommitConflict) as caught:
        drop_feature(late, "checkConstraints", "test")
    assert caught.value.code == "concurrent-commit"
    assert load_snapshot(store).config.protocol.min_writer_version == 3


@pytest.mark.parametrize(
    ("properties", "wanted", "needs"),
    [
        ({}, {"delta.enableRowTracking": "true"}, True), ({}, {"delta.enableRowTracking": "TRUE"}, True),
        ({}, {"delta.enableRowTracking": "false"}, False), ({}, {"delta.appendOnly": "true"}, False), ({}, {}, False),
        ({"delta.enableRowTracking": "true"}, {"delta.enableRowTracking": "true"}, False),
        ({"delta.feature.rowTracking": "supported"}, {"delta.enableRowTracking": "true"}, False),
    ],
)  # fmt: skip
def test_when_files_need_row_ids_first(properties: dict[str, str], wanted: dict[str, str], needs: bool) -> None:
    store = create(properties)
    assert needs_row_ids(load_snapshot(store), wanted) is needs
    empty = MemoryStore(uuid.uuid4().hex, "t")
    config = table_config(NewTable(SCHEMA))
    DeltaTarget(empty, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    assert not needs_row_ids(load_snapshot(empty), wanted)
