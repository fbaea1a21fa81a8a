"""Row ids that commits give, beside a plain loop; and how a plan makes the columns of them."""

from __future__ import annotations

import random
import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from delta_values import make_config, make_files, make_metadata, removal_of

from alluvium.delta.features.feature import CommitContext, ScanContext
from alluvium.delta.features.rows.row_ids import (
    DOMAIN,
    ENABLED,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    SUSPENDED,
    assign,
    high_water_mark,
    is_enabled,
    is_supported,
    is_true,
    name_columns,
    preserving,
)
from alluvium.delta.features.rows.row_tracking import (
    FEATURE,
    METADATA_COLUMNS,
    asked_columns,
    ensure_enabled,
    is_requested,
    on_scan,
    with_metadata_columns,
)
from alluvium.delta.terms.actions import Actions
from alluvium.delta.terms.live_files import picking_from
from alluvium.delta.terms.spec import DomainMetadata, Protocol
from alluvium.delta.view.scan import scan_files
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.plan.scan import Coalesce, FileConstant, OutputColumn, Physical, RowPosition, ScanPart, ScanPlan, Sum
from alluvium.schema.types import LONG, STRING, Field, Struct
from alluvium.storage.stores.memory import MemoryStore

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("rowTracking", "domainMetadata"))
ON = {ENABLED: "true"}
TAG = "delta.rowTracking.preserved"


def context(files: pa.Table, mark: int | None, *, version: int = 7, **properties: str) -> CommitContext:
    config = make_config(properties=properties, protocol=LISTED)
    domains = (
        {}
        if mark is None
        else {DOMAIN: DomainMetadata(domain=DOMAIN, configuration=f'{{"rowIdHighWaterMark":{mark}}}', removed=False)}
    )
    return CommitContext(config, config, version=version, pick_files=picking_from(files), domains=domains)


def stats(rows: int) -> str:
    return f'{{"numRecords":{rows}}}'


@pytest.mark.parametrize("seed", range(30))
def test_commits_beside_a_loop(seed: int) -> None:
    lot = random.Random(seed)
    mark = lot.choice([None, -1, 0, 41])
    live, known = [], dict[str, tuple[int | None, int | None, int]]()
    for n in range(lot.randint(0, 5)):
        rows, base = lot.randint(0, 4), lot.choice([None, 100 * n])
        version = None if base is None else lot.randint(0, 6)
        live.append({"path": f"live{n}", "stats": stats(rows), "baseRowId": base, "defaultRowCommitVersion": version})
        known[f"live{n}"] = base, version, rows
    removed = [row for row in live if lot.random() < 0.3]
    added: list[dict[str, Any]] = []
    for n in range(lot.randint(0, 4)):
        own = lot.choice([None, None, 900 + n])
        added.append(
            {
                "path": f"new{n}",
                "stats": stats(lot.randint(0, 4)),
                "baseRowId": own,
                "defaultRowCommitVersion": None if own is None else 2,
            }
        )
    added += [{"path": row["path"], "stats": row["stats"]} for row in live if lot.random() < 0.3]
    enabled = lot.random() < 0.5
    made = assign(
        Actions(added=make_files(*added), removed=removal_of(make_files(*removed))),
        context(make_files(*live), mark, **(ON if enabled else {})),
    )
    touched = {row["path"] for row in (*added, *removed)}
    if enabled:
        added += [{**row, "again": True} for row in live if row["baseRowId"] is None and row["path"] not in touched]
    next_id, expected = (-1 if mark is None else mark) + 1, []
    first = next_id
    for row in added:
        base, version, _ = known.get(row["path"], (None, None, 0))
        base, version = (
            row.get("baseRowId") if row.get("baseRowId") is not None else base,
            row.get("defaultRowCommitVersion") or version,
        )
        if base is None:
            base, next_id = next_id, next_id + int(row["stats"].split(":")[1][:-1])
        expected.append((row["path"], base, 7 if version is None else version, "again" not in row))
    found = made.added.select(["path", "baseRowId", "defaultRowCommitVersion", "dataChange"]).to_pylist()
    assert [tuple(row.values()) for row in found] == expected
    assert high_water_mark({one.domain: one for one in made.domains}) == (next_id - 1 if next_id > first else -1)
    assert len(made.domains) == (next_id > first)


@pytest.mark.parametrize(
    ("change", "info", "said"),
    [
        (True, {}, "true"),
        (False, {}, "false"),
        (False, {"tags": {"k": "v"}}, "false"),
        (False, {"tags": {TAG: "true"}}, "true"),
        (False, {"tags": "odd"}, "false"),
    ],
)
def test_whether_rows_kept_their_ids(change: bool, info: dict[str, Any], said: str) -> None:
    """ "if no rows are updated or copied": rearranged rows are copied, unless who does so says that they kept theirs."""
    gone = removal_of(make_files({"path": "a"}), data_change=change)
    made = assign(Actions(removed=gone, info=info), context(make_files(), 4))
    tags = made.info["tags"]
    assert isinstance(tags, dict) and tags[TAG] == said
    assert isinstance(info.get("tags"), str) or {**info.get("tags", {}), TAG: said} == tags
    assert made.added.num_rows == 0 and made.domains == ()


def test_who_copies_rows_with_their_ids_says_so() -> None:
    actions = Actions(info={"tags": {"k": "v"}})
    assert preserving(actions, make_config(protocol=LISTED)).info == {"tags": {"k": "v", TAG: "true"}}
    assert preserving(actions, make_config()) is actions


def test_domains_of_others_stay() -> None:
    other = DomainMetadata(domain="d", configuration="{}", removed=False)
    made = assign(
        Actions(added=make_files({"path": "a", "stats": stats(3)}), domains=(other,)), context(make_files(), 4)
    )
    assert made.domains[0] is other
    assert made.domains[1].configuration == '{"rowIdHighWaterMark":7,"domainName":"delta.rowTracking"}'
    assert (made.domains[1].domain, made.domains[1].removed) == ("delta.rowTracking", False)


def test_files_whose_rows_are_not_counted() -> None:
    """They need not be, where they have their ids already."""
    numbered = make_files({"path": "a", "baseRowId": 4, "defaultRowCommitVersion": 1}, {"path": "b", "stats": stats(1)})
    made = assign(Actions(added=numbered), context(make_files(), 9))
    assert made.added["baseRowId"].to_pylist() == [4, 10]
    with pytest.raises(CorruptTable) as caught:
        assign(
            Actions(added=make_files({"path": "b", "stats": stats(1)}, {"path": "c", "stats": "{}"}, {"path": "d"})),
            context(make_files(), 9),
        )
    assert (caught.value.code, caught.value.path) == ("no-num-records", "c")


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), (" TRUE ", True), ("false", False), ("yes", False), ("", False), (None, False)]
)
def test_flags_that_make_no_sense_are_not_set(text: str | None, value: bool) -> None:
    configuration = {} if text is None else {ENABLED: text}
    assert is_true(configuration, ENABLED) is value
    config = make_config(properties=configuration, protocol=LISTED)
    assert (is_enabled(config), is_requested(config), is_supported(config)) == (value, value, True)
    bare = make_config(properties=configuration)
    assert (is_enabled(bare), is_requested(bare), is_supported(bare)) == (False, value, False)


def test_names_of_columns_come_from_where_they_were_said() -> None:
    said = {MATERIALIZED_ROW_ID: "mine", MATERIALIZED_ROW_COMMIT_VERSION: ""}
    before = make_config(properties={MATERIALIZED_ROW_ID: "old", MATERIALIZED_ROW_COMMIT_VERSION: "older", "k": "v"})
    assert name_columns(make_metadata(properties=said), before).configuration == {
        MATERIALIZED_ROW_ID: "mine",
        MATERIALIZED_ROW_COMMIT_VERSION: "older",
    }
    found = name_columns(make_metadata(properties={"k": "w"}), before).configuration
    assert found == {MATERIALIZED_ROW_ID: "old", MATERIALIZED_ROW_COMMIT_VERSION: "older", "k": "w"}
    fresh = name_columns(make_metadata(), None).configuration
    for key, prefix in (
        (MATERIALIZED_ROW_ID, "_row-id-col-"),
        (MATERIALIZED_ROW_COMMIT_VERSION, "_row-commit-version-col-"),
    ):
        assert uuid.UUID(fresh[key].removeprefix(prefix)).version == 4 and fresh[key].startswith(prefix)
    for suspended, enabled in (("true", "false"), ("false", "true")):
        name_columns(make_metadata(properties={SUSPENDED: suspended, ENABLED: enabled}), None)


# -- reading ----------------------------------------------------------------------------------------------------------

NAMES = {MATERIALIZED_ROW_ID: "_m_id", MATERIALIZED_ROW_COMMIT_VERSION: "_m_version"}


def planned(names: tuple[str, ...], **properties: str) -> tuple[ScanPlan, ScanContext]:
    config = make_config(properties={**ON, **properties}, protocol=LISTED)
    files = make_files(
        {"path": "a%20b", "baseRowId": 3, "defaultRowCommitVersion": 1},
        {"path": "c", "baseRowId": 9, "defaultRowCommitVersion": 2},
    )
    scanned = scan_files(files, config, "UTC")
    output = (OutputColumn("id", LONG, True, Physical(("id",), LONG)),)
    parts = tuple(
        ScanPart(key, part, "parquet", config.data_columns, output)
        for key, part in (("one", scanned), ("two", scanned.slice(1)), ("none", scanned.slice(0, 0)))
    )
    store = MemoryStore(uuid.uuid4().hex, "/t")
    return ScanPlan("memory://t", parts, config.schema), ScanContext(
        config, files, store, "UTC", metadata_columns=names
    )


def test_columns_of_a_plan() -> None:
    plan, given = planned(METADATA_COLUMNS, **NAMES)
    found = on_scan(plan, given)
    row_id = Coalesce((Physical(("_m_id",), LONG), Sum((FileConstant("baseRowId", LONG), RowPosition()))))
    version = Coalesce((Physical(("_m_version",), LONG), FileConstant("defaultRowCommitVersion", LONG)))
    for part, rows in zip(found.parts, ([(3, 1), (9, 2)], [(9, 2)], []), strict=True):
        assert part.output[1:] == (
            OutputColumn("_row_id", LONG, False, row_id),
            OutputColumn("_row_commit_version", LONG, False, version),
        )
        assert part.read_schema.fields[-2:] == (Field("_m_id", LONG), Field("_m_version", LONG))
        assert [tuple(row.values()) for row in part.files["constants"].to_pylist()] == rows
    bare = on_scan(*planned(("_row_id",))).parts[0]
    assert bare.output[1:] == (
        OutputColumn("_row_id", LONG, False, Sum((FileConstant("baseRowId", LONG), RowPosition()))),
    )
    assert bare.read_schema == given.config.data_columns
    assert bare.files["constants"].to_pylist() == [{"baseRowId": 3}, {"baseRowId": 9}]
    untouched, none = planned(())
    assert on_scan(untouched, none) is untouched
    # A column of the files that is read already is read once.
    own = planned(("_row_id",), **{MATERIALIZED_ROW_ID: "id"})
    assert on_scan(*own).parts[0].read_schema.names == own[1].config.data_columns.names


@pytest.mark.parametrize("name", METADATA_COLUMNS)
def test_files_and_tables_without_ids(name: str) -> None:
    plan, given = planned((name,))
    lacking = make_files({"path": "a%20b", "baseRowId": 3, "defaultRowCommitVersion": 1}, {"path": "c"})
    with pytest.raises(CorruptTable) as caught:
        on_scan(plan, replace(given, files=lacking))
    assert (caught.value.code, caught.value.path) == ("no-row-ids", "c")
    with pytest.raises(InvalidRequest) as refused:
        on_scan(plan, replace(given, config=make_config(protocol=LISTED)))
    assert (refused.value.code, refused.value.column) == ("row-tracking-disabled", name)
    with pytest.raises(InvalidRequest) as refused:
        ensure_enabled(make_config(properties=ON))
    assert refused.value.column == "_row_id"


def test_names_beside_the_schema() -> None:
    assert METADATA_COLUMNS == ("_row_id", "_row_commit_version") and FEATURE.on_scan is on_scan
    schema = Struct((Field("id", LONG), Field("_ROW_ID", STRING)))
    config = make_config(schema, properties=ON, protocol=LISTED)
    assert with_metadata_columns(config) == Struct((*schema.fields, Field("_row_commit_version", LONG, False)))
    both = make_config(properties=ON, protocol=LISTED)
    assert with_metadata_columns(both).names == ("id", "p", "_row_id", "_row_commit_version")
    off = make_config(schema, protocol=LISTED)
    assert with_metadata_columns(off) is off.schema
    assert asked_columns(["_row_commit_version", "_ROW_ID", "id"], Struct(())) == METADATA_COLUMNS
    assert asked_columns(["_row_ids"], Struct(())) == ()
