"""What manifests tell of files before they are opened: of instants and dates, ids of rows, partitions, any type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.schema import DataField, SchemaChange, TableSchema, number_fields, parse_type
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.view.file_contents import earliest_date, has_local_instants, held_columns, instant_bounds
from alluvium.paimon.view.scan import plan_scan
from alluvium.paimon.view.stats import EntryStatistics
from alluvium.plan.scan import FileConstant, Literal, OutputColumn, Physical
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, Field, Struct
from alluvium.storage.open import open_store

LTZ = "TIMESTAMP(6) WITH LOCAL TIME ZONE"
UTC = dt.timezone.utc


def make(
    path: Path, kinds: dict[str, Any], *rows: dict[str, Any], parted: Sequence[str] = (), **options: str
) -> Snapshot:
    """A table without keys; a commit of one file for each row."""
    url = str(path / "t")
    fields = number_fields(DataField(0, name, parse_type(kind)) for name, kind in kinds.items())
    PaimonTable.create(url, fields, parted, options=options)
    for row in rows:
        append(open_target(open_store(url)), [row])
    return load_snapshot(open_store(url))


def changed(entries: pa.Table, **columns: list[Any]) -> pa.Table:
    for name, values in columns.items():
        place = entries.schema.get_field_index(name)
        entries = entries.set_column(place, entries.schema.field(place), pa.array(values, entries.field(place).type))
    return entries


def statistics(snapshot: Snapshot, entries: pa.Table | None = None) -> EntryStatistics:
    entries = snapshot.entries if entries is None else entries
    return EntryStatistics(snapshot, entries, partitions_of(entries, snapshot.schema))


def listed(values: pa.Array | None) -> list[Any] | None:
    return None if values is None else values.to_pylist()


@pytest.mark.parametrize(
    ("kind", "value", "low", "high"),
    [
        ("BOOLEAN", True, True, True), ("TINYINT", -3, -3, -3), ("SMALLINT", 300, 300, 300), ("BIGINT", 1 << 40, 1 << 40, 1 << 40),
        ("FLOAT", 1.5, 1.5, None), ("DOUBLE", 1.5, 1.5, None), ("STRING", "ab", "ab", "ab"), ("CHAR(3)", "ab ", "ab ", "ab "),
        ("DATE", dt.date(2024, 5, 9), dt.date(2024, 5, 9), dt.date(2024, 5, 9)),
        ("DECIMAL(9, 2)", Decimal("1.25"), Decimal("1.25"), Decimal("1.25")),
        ("DECIMAL(30, 2)", Decimal("-1.25"), Decimal("-1.25"), Decimal("-1.25")),
        ("TIMESTAMP(6)", dt.datetime(2024, 5, 9, 1, 2, 3, 4), dt.datetime(2024, 5, 9, 1, 2, 3, 4), dt.datetime(2024, 5, 9, 1, 2, 3, 4)),
        (LTZ, dt.datetime(2024, 5, 9, 1, tzinfo=UTC), dt.datetime(2024, 5, 9, 1, tzinfo=UTC), dt.datetime(2024, 5, 9, 1, tzinfo=UTC)),
        # Nobody asks for bounds of bytes.
        ("BYTES", b"x", None, None),
    ],
)  # fmt: skip
def test_bounds_of_types(tmp_path: Path, kind: str, value: Any, low: Any, high: Any) -> None:
    snapshot = make(tmp_path, {"k": "INT", "c": kind}, {"k": 1, "c": value}, {"k": 2, "c": None})
    logical = to_logical(parse_type(kind))
    arrow = to_arrow(logical)
    # The second file says it of a null.
    bounds = [
        encode_rows([pa.array([1], pa.int32()), pa.array([v], arrow)], [(t.INTEGER, 0), (logical, parse_type(kind).precision)])
        for v in (value, None)
    ]  # fmt: skip
    rows = [made[0].as_py() for made in bounds]
    entries = changed(snapshot.entries, stats_min=rows, stats_max=rows, value_stats_cols=[None, None])
    known = statistics(snapshot, entries)
    for found, wanted in ((known.lower(("c",)), low), (known.upper(("c",)), high)):
        assert listed(found) == (None if wanted is None else [wanted, None])
        assert found is None or found.type == arrow
    assert (listed(known.lower(("k",))), listed(known.null_count(("c",)))) == ([1, 1], [0, 1])


def test_values_of_partitions(tmp_path: Path) -> None:
    snapshot = make(tmp_path, {"p": "STRING", "k": "INT"}, {"p": "a", "k": 1}, {"p": None, "k": 2}, parted=["p"])
    known = statistics(snapshot)
    assert listed(known.exact(("p",))) == ["a", None]
    assert known.exact(("k",)) is known.exact(("p", "x")) is known.exact(()) is None
    assert (known.num_files, listed(known.num_rows())) == (2, [1, 1])
    nothing = statistics(snapshot, snapshot.entries.slice(0, 0))
    assert (nothing.num_files, listed(nothing.lower(("k",))), listed(nothing.null_count(("k",)))) == (0, [], [])


ROW_ID, NUMBER = ("_ROW_ID",), ("_SEQUENCE_NUMBER",)


@pytest.mark.parametrize("options", [{"row-tracking.enabled": "true"}, {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}])  # fmt: skip
def test_ids_of_rows(tmp_path: Path, options: dict[str, str]) -> None:
    """Each file has those from its first on, and one number for all; of files that store some nothing is known."""
    snapshot = make(tmp_path, {"k": "INT"}, {"k": 1}, {"k": 2}, {"k": 3}, {"k": 4}, **options)
    entries = changed(
        snapshot.entries,
        first_row_id=[5, 10, 20, None],
        row_count=[1, 3, 4, 2],
        max_sequence_number=[7, 8, 9, 10],
        write_cols=[None, ["k"], ["k", "_ROW_ID", "_SEQUENCE_NUMBER"], None],
    )
    known = statistics(snapshot, entries)
    assert (listed(known.lower(ROW_ID)), listed(known.upper(ROW_ID))) == ([5, 10, None, None], [5, 12, None, None])
    assert listed(known.lower(NUMBER)) == listed(known.upper(NUMBER)) == [7, 8, None, 10]
    assert (listed(known.null_count(ROW_ID)), listed(known.null_count(NUMBER))) == ([0, 0, None, None], [0, 0, None, 0])
    one = changed(entries, write_cols=[None, None, ["k", "_ROW_ID"], None])
    assert listed(statistics(snapshot, one).lower(NUMBER)) == [7, 8, 9, 10]
    for other in (replace(snapshot.schema, primary_keys=("k",)), replace(snapshot.schema, options={})):
        plain = statistics(replace(snapshot, schema=other), entries)
        assert plain.lower(ROW_ID) is plain.upper(NUMBER) is plain.null_count(ROW_ID) is None
    # A column of this name is the user's.
    own = replace(snapshot.schema, fields=(DataField(0, "_ROW_ID", parse_type("INT")),))
    named = replace(snapshot, schema=own)
    assert listed(
        EntryStatistics(named, entries.slice(0, 1), partitions_of(entries.slice(0, 1), own)).lower(ROW_ID)
    ) == [1]


def column(name: str, kind: t.DataType, *path: str) -> OutputColumn:
    return OutputColumn(name, kind, True, Physical(path or (name,), kind))


def test_bounds_of_instants(tmp_path: Path) -> None:
    """Of columns of files, under their names there: neither of constants, nor of what lies within, nor of other types."""
    when = [dt.datetime(2024, 1, n, tzinfo=UTC) for n in (1, 2)]
    kinds = {"z": LTZ, "n": "TIMESTAMP(6)", "d": "DATE"}
    snapshot = make(tmp_path, kinds, {"z": when[0], "n": None, "d": None}, {"z": when[1]})
    entries = snapshot.entries
    partitions = partitions_of(entries, snapshot.schema)
    instant, wall = t.TIMESTAMP, t.TIMESTAMP_NTZ
    output = [
        column("z", instant, "old"), column("n", wall), column("d", t.DATE), column("gone", instant),
        OutputColumn("z", instant, True, FileConstant("z", instant)), OutputColumn("z", instant, True, Literal(None, instant)),
        column("z", instant, "s", "z"),
    ]  # fmt: skip
    found = instant_bounds(snapshot, entries, partitions, output)
    assert found.to_pylist() == [{"old": {"low": each, "high": each}} for each in when]
    append(open_target(snapshot.store), [{"z": when[1]}, {"z": when[0]}, {"z": None}])
    wide = load_snapshot(snapshot.store)
    bounds = instant_bounds(wide, wide.entries, partitions_of(wide.entries, wide.schema), output[:1])
    assert bounds.to_pylist()[2:] == [{"old": {"low": when[0], "high": when[1]}}]
    none = instant_bounds(snapshot, entries, partitions, output[1:])
    assert (none.type, len(none), none.null_count) == (pa.struct([]), 2, 2)
    # A row that cannot be read is one that tells nothing.
    damaged = changed(entries, stats_min=[entries["stats_min"][0].as_py(), b"\xff" * 40])
    assert len(instant_bounds(snapshot, damaged, partitions, output[:1])) == 2


def dates(snapshot: Snapshot, *output: OutputColumn, **columns: list[Any]) -> dt.date | None:
    entries = changed(snapshot.entries, **columns)
    return earliest_date(snapshot, entries, partitions_of(entries, snapshot.schema), output)


def test_the_earliest_date_of_all(tmp_path: Path) -> None:
    first, second = dt.date(2020, 1, 1), dt.date(2024, 1, 1)
    snapshot = make(
        tmp_path, {"a": "DATE", "b": "DATE", "k": "INT"}, {"a": second, "b": None, "k": 1}, {"a": first, "b": second}
    )
    a, b, k = column("a", t.DATE), column("b", t.DATE), column("k", t.INTEGER)
    assert dates(snapshot, a) == dates(snapshot, b, a) == dates(snapshot, k, a) == first
    assert (dates(snapshot, b), dates(snapshot, k), dates(snapshot)) == (second, None, None)
    # A file without a date has none to be early, as long as somebody counted.
    assert dates(snapshot, b, stats_nulls=[[0, 1, 0], [0, 0, 0]]) == second
    assert dates(snapshot, b, stats_nulls=[[0, 0, 0], [0, 0, 0]]) is None
    assert dates(snapshot, b, stats_nulls=[None, [0, 0, 0]]) is None
    assert dates(snapshot, OutputColumn("a", t.DATE, True, FileConstant("a", t.DATE))) is None
    assert dates(snapshot, column("n", Array(t.DATE, True)), a) is None
    assert dates(snapshot, column("gone", t.DATE), a) is None

    def bound(days: int) -> bytes:
        arrays = [pa.array([days], pa.int32()), pa.array([days], pa.int32()), pa.array([1], pa.int32())]
        made: bytes = encode_rows(arrays, [(t.INTEGER, 0)] * 3)[0].as_py()
        return made

    # Python's dates are not all of Paimon's.
    for days, wanted in (
        (-800_000, dt.date.min),
        (-719_162, dt.date.min),
        (-719_161, dt.date(1, 1, 2)),
        (2_932_896, dt.date.max),
    ):
        assert dates(snapshot, a, stats_min=[bound(days), bound(2_932_897)]) == wanted
    assert dates(snapshot, a, stats_min=[bound(2_932_900)] * 2) == dt.date.max
    assert dates(snapshot, a, stats_min=[bound(0), b"\xff" * 8]) is None


def test_columns_of_files_by_the_schema_that_wrote_them() -> None:
    fields = number_fields(
        DataField(0, n, parse_type(k)) for n, k in (("k", "INT NOT NULL"), ("p", "STRING NOT NULL"), ("v", LTZ))
    )
    plain = TableSchema(0, fields, 2)
    own = (Field("k", t.INTEGER), Field("p", t.STRING), Field("v", t.TIMESTAMP))
    assert held_columns(plain, None) == Struct(own)
    assert held_columns(plain, ["v", "k", "gone"]) == Struct((own[0], own[2]))
    keyed = replace(plain, partition_keys=("p",), primary_keys=("k", "p"))
    hidden = (Field("_SEQUENCE_NUMBER", t.LONG), Field("_VALUE_KIND", t.BYTE))
    assert held_columns(keyed, None) == Struct((Field("_KEY_k", t.INTEGER), *hidden, *own))
    strange = replace(plain, fields=(*fields, DataField(3, "g", parse_type("GEOMETRY(OGC:CRS84)"))))
    assert held_columns(strange, None) is None and held_columns(strange, ["k"]) == Struct(own[:1])


@pytest.mark.parametrize(
    ("held", "said", "asked", "wanted"),
    [
        (t.TIMESTAMP, None, None, True), (t.TIMESTAMP_NANOS, None, None, True), (Array(t.TIMESTAMP, True), None, None, True),
        (t.TIMESTAMP_NTZ, None, None, False), (t.INTEGER, "true", "true", False), (None, None, None, True),
        (None, "false", None, False), (t.TIMESTAMP, "false", None, False), (t.TIMESTAMP, "false", "true", True),
        (t.TIMESTAMP, "true", "false", False), (t.TIMESTAMP, None, "false", False),
    ],
)  # fmt: skip
def test_whose_instants_may_go_by_the_clock(
    tmp_path: Path, held: t.DataType | None, said: str | None, asked: str | None, wanted: bool
) -> None:
    """By the table's word when they were written, and by the call's before that."""
    key = "orc.timestamp-ltz.legacy.type"
    snapshot = make(tmp_path, {"k": "INT"})
    snapshot = replace(snapshot, asked={} if asked is None else {key: asked})
    schema = replace(snapshot.schema, options={} if said is None else {key: said})
    columns = None if held is None else Struct((Field("k", t.INTEGER), Field("c", held)))
    assert has_local_instants(snapshot, schema, columns) is wanted


def test_only_readers_of_orc_need_ask(tmp_path: Path) -> None:
    """The other formats' parts say nothing of dates and clocks; and files of an older schema go by its columns."""
    when = dt.datetime(2024, 1, 1, tzinfo=UTC)
    for form in ("parquet", "orc"):
        snapshot = make(
            tmp_path / form, {"z": LTZ, "d": "DATE"}, {"z": when, "d": when.date()}, **{"file.format": form}
        )
        PaimonTable.forPath(snapshot.store.url).alter([SchemaChange.rename_column("z", "y")])
        (part,) = plan_scan(load_snapshot(snapshot.store)).parts
        is_orc = form == "orc"
        assert (part.local_instants, part.earliest_date) == (is_orc, when.date() if is_orc else None)
        names = [f.name for f in part.files["constants"].type]
        assert ("_instant_bounds" in names) is is_orc
        assert part.held is not None and part.held.names == ("z", "d")
        if is_orc:
            (bounds,) = part.files["constants"].combine_chunks().field("_instant_bounds").to_pylist()
            assert bounds == {"z": {"low": when, "high": when}}
            kept = replace(snapshot, asked={"orc.timestamp-ltz.legacy.type": "false"})
            assert not plan_scan(kept).parts[0].local_instants
