"""Statistics as manifests have them: every mode, bounds of texts that are cut, and random footers beside plain lists."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, RunEnds
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.paimon.files.file_stats import KEY_MODE, StatsMode, bounds_of, stats_columns, value_stats, values_of
from alluvium.paimon.files.hash_index import INDEX_TYPE, format_hashes, new_entries, read_hashes
from alluvium.paimon.files.key_stats import key_entries, key_name, stored_key_names
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import INDEX_ENTRIES
from alluvium.schema import types as t
from alluvium.storage.stores.memory import MemoryStore

COLUMNS = {
    "k": "INT NOT NULL",
    "s": "STRING",
    "b": "BYTES",
    "d": "DATE",
    "n": "DECIMAL(5, 2)",
    "ts": "TIMESTAMP(3)",
    "l": "BIGINT",
}


def schema(primary: tuple[str, ...] = (), **options: str) -> TableSchema:
    fields = [DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(COLUMNS.items())]
    fields.append(DataField(8, "a", parse_type({"type": "ARRAY", "element": "INT"})))
    return TableSchema.create(tuple(fields), (), primary, {"bucket": "1", **options} if primary else options)


def names(**options: str) -> list[str]:
    return [column.path[0] for column in stats_columns(schema(**options))]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, [*COLUMNS]), ({"metadata.stats-mode": "none"}, []), ({"metadata.stats-mode": " Full "}, [*COLUMNS]), ({"metadata.stats-mode": "counts"}, [*COLUMNS]),
        ({"fields.s.stats-mode": "none"}, [n for n in COLUMNS if n != "s"]), ({"metadata.stats-mode": "none", "fields.s.stats-mode": "truncate(3)"}, ["s"]),
        ({"metadata.stats-keep-first-n-columns": "2"}, ["k", "s"]), ({"metadata.stats-keep-first-n-columns": "0"}, []),
        ({"metadata.stats-keep-first-n-columns": "-1"}, [*COLUMNS]), ({"metadata.stats-keep-first-n-columns": "2", "fields.l.stats-mode": "full"}, ["k", "s", "l"]),
        # Of what is made of several, nulls alone, and from Parquet not even these.
        ({"file.format": "orc"}, [*COLUMNS, "a"]), ({"file.format": "orc", "metadata.stats-mode": "none"}, []),
    ],
    ids=str,
)  # fmt: skip
def test_of_which_columns(given: dict[str, str], told: list[str]) -> None:
    assert names(**given) == told


@pytest.mark.parametrize("mode", ["truncate(0)", "truncate(x)", "truncate", "truncate(1", "all", "", "truncate(-1)"])
def test_modes_that_are_none(mode: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        names(**{"fields.d.stats-mode": mode})
    assert caught.value.code == "invalid-table-option"


def test_keys_have_a_mode_of_their_own_in_thin_files() -> None:
    none = {"metadata.stats-mode": "none"}
    for more, told in (
        ({}, []),
        ({"data-file.thin-mode": "true"}, ["k"]),
        ({"data-file.thin-mode": "true", "fields.k.stats-mode": "none"}, []),
    ):
        found = stats_columns(schema(("k",), **none, **more))
        assert [column.path[0] for column in found] == told


def halves(ends: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The lower bounds, and the upper ones behind them."""
    return ends.slice(0, len(ends) // 2), ends.slice(len(ends) // 2)


LETTERS = ["a", "z", "\x00", "\ud7ff", "\ue000", "\U0010ffff", "é", "\U0001f600"]


def test_texts_are_cut_so_that_they_bound() -> None:
    """Beside the definition: the least of all texts of so many letters (or fewer) that is not less."""
    lot = random.Random(0)
    for _ in range(600):
        text, length = "".join(lot.choices(LETTERS, k=lot.randint(0, 5))), lot.randint(1, 4)
        low, high = halves(bounds_of([ColumnStats(t.STRING, text, text, 0)], t.STRING, StatsMode(length=length)))
        cut = text[:length]
        if len(text) <= length:
            expected: str | None = text
        else:
            head = cut.rstrip("\U0010ffff")
            following = chr(ord(head[-1]) + 1) if head and head[-1] != "\ud7ff" else "\ue000"
            expected = head[:-1] + following if head else None
        assert high.to_pylist() == [expected]
        assert low.to_pylist() == [cut if expected is not None else None]
        assert expected is None or (expected.encode() >= text.encode() and len(expected) <= length)


def test_bounds_are_both_known_or_none() -> None:
    def stats(low: Any, high: Any) -> ColumnStats:
        return ColumnStats(t.LONG, low, high, 1)

    some = [stats(1, 5), stats(None, 5), stats(1, None), None, stats(2, 2)]
    low, high = halves(bounds_of(some, t.LONG, StatsMode()))
    assert low.to_pylist() == [1, None, None, None, 2] and high.to_pylist() == [5, None, None, None, 2]
    for mode, kind in ((StatsMode(bounds=False), t.LONG), (StatsMode(), t.BINARY)):
        assert bounds_of(
            [ColumnStats(kind, b"a" if kind == t.BINARY else 1, b"b" if kind == t.BINARY else 1, 0)], kind, mode
        ).to_pylist() == [None, None]
    whole = bounds_of([ColumnStats(t.STRING, "x" * 300, "y" * 300, 0)], t.STRING, StatsMode())
    assert [len(one.as_py()) for one in whole] == [300, 300]
    keys = bounds_of([ColumnStats(t.STRING, "x" * 300, "y" * 300, 0)], t.STRING, KEY_MODE)
    assert [len(one.as_py()) for one in keys] == [128, 128] and keys[1].as_py()[-1] == "z"


@pytest.mark.parametrize(
    ("kind", "raw", "shown"),
    [(t.DATE, 1, "1970-01-02"), (t.TIME, 1, "00:00:00.001"), (t.TIMESTAMP_NTZ, 1, "1970-01-01 00:00:00.000001"), (t.TIMESTAMP, -1, "1969-12-31 23:59:59.999999Z"), (t.STRING, "1", "1")],
)  # fmt: skip
def test_bounds_as_values(kind: t.DataType, raw: Any, shown: str) -> None:
    found = values_of([raw, None], kind)
    assert found.cast(pa.string()).to_pylist() == [shown, None]


@pytest.mark.parametrize("dense", ["true", "false"])
@pytest.mark.parametrize("seed", range(8))
def test_random_footers(seed: int, dense: str) -> None:
    lot = random.Random(seed)
    modes = {name: lot.choice(["none", "counts", "full", "truncate(2)"]) for name in COLUMNS}
    own = schema(
        **{"metadata.stats-dense-store": dense, **{f"fields.{name}.stats-mode": mode for name, mode in modes.items()}}
    )
    makers = {"k": lambda: lot.randint(-5, 5), "s": lambda: "".join(lot.choices("abc", k=lot.randint(0, 4))), "b": lambda: b"x", "d": lambda: lot.randint(0, 9),
              "n": lambda: None, "ts": lambda: lot.randint(0, 99) * 1000, "l": lambda: lot.randint(0, 9)}  # fmt: skip
    footers = []
    for _ in range(3):
        columns = {}
        for name in COLUMNS:
            ends = sorted([makers[name](), makers[name]()], key=lambda v: (v is None, v))
            if lot.random() < 0.8:
                columns[(name,)] = ColumnStats(t.LONG, ends[0], ends[1], lot.choice([0, 3, None]))
        footers.append(FileFooter(9, columns))
    found = value_stats(own, footers)
    kept = [name for name in COLUMNS if dense == "false" or modes[name] != "none"]
    everything = [*kept, *(["a"] if dense == "false" else [])]
    assert found.columns == (None if len(everything) == len(own.fields) else tuple(everything))
    types = [
        (
            t.BINARY if name == "a" else to_logical(own.fields[[f.name for f in own.fields].index(name)].type),
            3 if name == "ts" else 0,
        )
        for name in everything
    ]
    for side in ("low", "high"):
        rows = getattr(found, side)
        if not everything:
            assert rows.to_pylist() == [bytes(12)] * 3
            continue
        decoded = decode_rows(rows, types)
        for name, values in zip(everything, decoded, strict=True):
            for footer, value in zip(footers, values, strict=True):
                stats = footer.columns.get((name,))
                end = None if stats is None else stats.min if side == "low" else stats.max
                if name in ("a", "b") or modes[name] in ("none", "counts") or stats is None:
                    end = None
                if isinstance(end, str) and modes[name] == "truncate(2)" and len(end) > 2:
                    end = end[:2] if side == "low" else end[0] + chr(ord(end[1]) + 1)
                assert raw(value) == end, (name, side)
    for footer, nulls in zip(footers, found.nulls.to_pylist(), strict=True):
        expected = [
            None
            if name == "a" or modes[name] == "none" or (name,) not in footer.columns
            else footer.columns[(name,)].null_count
            for name in everything
        ]
        assert nulls == expected


def raw(value: pa.Scalar) -> Any:
    if not value.is_valid:
        return None
    if pa.types.is_date(value.type):
        return value.value
    return (
        value.cast(pa.int64()).as_py() * (1000 if value.type.unit == "ms" else 1)
        if pa.types.is_timestamp(value.type)
        else value.as_py()
    )


# -- keys, and hashes of keys -----------------------------------------------------------------------------------------


def test_keys_of_files() -> None:
    own = schema(("s", "l"))
    assert stored_key_names(own) == ("_KEY_s", "_KEY_l") == (key_name("s"), key_name("l"))
    assert stored_key_names(schema(("s", "l"), **{"data-file.thin-mode": "true"})) == ("s", "l")

    def footer(ends: RunEnds | None, sequence: Any = 0) -> FileFooter:
        columns = {("_KEY_s",): ColumnStats(t.STRING, "a", "c", 0), ("_KEY_l",): ColumnStats(t.LONG, 1, 9, 2)}
        return FileFooter(3, {**columns, ("q",): ColumnStats(t.LONG, sequence, 17, 0)})

    ends = [RunEnds(("a", 9), ("c", 1), 2), RunEnds(("b", 5), ("b", 6), 0)]
    footers = [
        FileFooter(one.num_rows, one.columns, end)
        for one, end in zip([footer(None, 3), footer(None, 4)], ends, strict=True)
    ]
    found = key_entries(own, footers, "q")
    types = [(t.STRING, 0), (t.LONG, 0)]
    texts = {
        name: [values.to_pylist() for values in decode_rows(found[name], types)]
        for name in ("min_key", "max_key", "key_stats_min", "key_stats_max")
    }
    assert texts == {
        "min_key": [["a", "b"], [9, 5]],
        "max_key": [["c", "b"], [1, 6]],
        "key_stats_min": [["a", "a"], [1, 1]],
        "key_stats_max": [["c", "c"], [9, 9]],
    }
    assert found["key_stats_nulls"].to_pylist() == [[0, 2], [0, 2]] and found["delete_row_count"].to_pylist() == [2, 0]
    assert found["min_sequence_number"].to_pylist() == [3, 4] and found["max_sequence_number"].to_pylist() == [17, 17]
    for broken in (
        FileFooter(3, footers[0].columns),
        FileFooter(3, {}, ends[0]),
        FileFooter(3, footer(None, None).columns, ends[0]),
        FileFooter(3, footer(None, "x").columns, ends[0]),
    ):
        with pytest.raises(CorruptTable) as caught:
            key_entries(own, [broken], "q")
        assert caught.value.code == "damaged-file"


def test_hashes_come_back() -> None:
    store, given = (
        MemoryStore("hashes", "/t"),
        {
            (b"p", 0): np.array([1, -1, 2**31 - 1], np.int32),
            (b"p", 7): np.array([], np.int32),
            (b"q", 0): np.array([-(2**31)], np.int32),
        },
    )
    entries, contents = new_entries(given)
    assert format_hashes(given[(b"p", 0)]) == b"\x00\x00\x00\x01\xff\xff\xff\xff\x7f\xff\xff\xff"
    for name, data in contents.items():
        store.put(f"index/{name}", data)
    assert entries.schema == INDEX_ENTRIES and len(set(entries["file_name"].to_pylist())) == 3
    rows = entries.to_pylist()
    assert [(r["kind"], r["partition"], r["bucket"], r["index_type"], r["file_size"], r["row_count"]) for r in rows] == [
        (0, b"p", 0, INDEX_TYPE, 12, 3), (0, b"p", 7, INDEX_TYPE, 0, 0), (0, b"q", 0, INDEX_TYPE, 4, 1),
    ]  # fmt: skip
    assert [found.tolist() for found in read_hashes(store, entries)] == [values.tolist() for values in given.values()]
    assert INDEX_TYPE == "HASH"
    for data in (b"\x00" * 8, b"\x00" * 13, b""):
        store.put(f"index/{rows[0]['file_name']}", data)
        with pytest.raises(CorruptTable) as caught:
            read_hashes(store, entries)
        assert caught.value.code == "damaged-index"
    external = entries.slice(2, 1).set_column(
        entries.schema.get_field_index("external_path"), INDEX_ENTRIES.field("external_path"), pa.array(["else/where"])
    )
    store.put("else/where", b"\x00\x00\x00\x05")
    assert read_hashes(store, external)[0].tolist() == [5]


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("ab\U0010fffex", "ab\U0010ffff"), ("ab\U0010ffffx", "ac"), ("a\U0010ffff\U0010ffffx", "b"), ("\ud7ff\ud7ff\ud7ffx", "\ud7ff\ud7ff\ue000"),
        ("ab\ufffdx", "ab\ufffe"), ("\U0010ffff" * 4, None), ("abc", "abc"),
    ],
)  # fmt: skip
def test_the_last_letters_there_are(text: str, above: str | None) -> None:
    """Up to U+10FFFF each letter has one behind it, but for the halves of others."""
    _, high = halves(bounds_of([ColumnStats(t.STRING, "a", text, 0)], t.STRING, StatsMode(length=3)))
    assert high.to_pylist() == [above]
