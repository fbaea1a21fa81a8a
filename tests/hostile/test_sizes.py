"""Numbers, names and nesting beyond all bounds: refused or read, and quickly either way."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz_tables import add, column, remove

import alluvium
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest
from alluvium.expr.sql.parse import parse_engine_filter
from alluvium.expr.tree import Unknown
from alluvium.schema.spark_json import MAX_DEPTH, parse_schema
from alluvium.schema.types import LONG, Field, Struct

#: What takes exponentially long, or for ever, ends here.
pytestmark = pytest.mark.timeout(20)
DEEP = "(" * 10_000 + "1" + ")" * 10_000 + " = 1"


# -- expressions ------------------------------------------------------------------------------------------------------

BOMBS = {
    "parentheses": DEEP,
    "open parentheses": "(" * 50_000,
    "sums": "+".join(["1"] * 20_000) + " = 1",
    "functions": "abs(" * 3000 + "id" + ")" * 3000 + " = 1",
    "casts": "cast(" * 3000 + "id" + " as int)" * 3000 + " = 1",
    "cases": "case when " * 2000 + "true" + " then 1 end" * 2000,
    "conjunction": " and ".join(["id > 0"] * 60_000),
    "text": "id = '" + "x" * 3_000_000 + "'",
    "names": "a" + ".a" * 5000 + " = 1",
    "elements": "id" + "[0]" * 5000 + " = 1",
    "concatenation": "||".join(["'a'"] * 5000) + " = 'a'",
    "negations": "not (" * 5000 + "true" + ")" * 5000,
    "minus": "- " * 5000 + "1 = 1",
    "between": "id between " * 3000 + "1",
}


@pytest.mark.long
@pytest.mark.parametrize("name", BOMBS)
def test_predicates_that_would_exhaust_a_parser(build, name: str) -> None:
    t = alluvium.open(build().write())
    for act in (t.files, lambda where: t.to_arrow(where=where)):
        with pytest.raises(InvalidRequest) as caught:
            act(BOMBS[name])
        assert caught.value.code == "invalid-predicate"
        assert len(str(caught.value)) < 1000
    # Spark's own filters are never refused: the file is then read, not skipped.
    assert isinstance(parse_engine_filter(BOMBS[name], Struct((Field("id", LONG),))), Unknown)


@pytest.mark.parametrize("text", [DEEP, "x" * 5_000_000, "[" * 100_000, "\0", "'", '{"expression":' * 2000])
@pytest.mark.parametrize("key", ["delta.generationExpression", "CURRENT_DEFAULT", "delta.invariants"])
def test_expressions_of_columns_are_of_no_interest_to_readers(build, key: str, text: str) -> None:
    assert alluvium.open(build(id_metadata={key: text}).write()).to_arrow().num_rows == 2


@pytest.mark.parametrize("text", [DEEP, "x" * 5_000_000, "id > " * 10_000])
def test_constraints_are_of_no_interest_to_readers(build, text: str) -> None:
    assert alluvium.open(build(configuration={"delta.constraints.c": text}).write()).to_arrow().num_rows == 2


# -- schemas ----------------------------------------------------------------------------------------------------------


def nested(kind: str, levels: int) -> object:
    """A column's type so that the innermost name stands `levels` deep, the column's own name counted."""
    made: object = "long"
    for _ in range(levels - 1):
        made = {
            "struct": {"type": "struct", "fields": [column("a", made)]},
            "array": {"type": "array", "elementType": made, "containsNull": True},
            "map": {"type": "map", "keyType": "string", "valueType": made, "valueContainsNull": True},
        }[kind]
    return made


@pytest.mark.parametrize("kind", ["struct", "array", "map"])
def test_a_hundred_levels_are_read(build, kind: str) -> None:
    t = alluvium.open(build([column("n", nested(kind, MAX_DEPTH))]).write())
    assert t.to_arrow().column("n").null_count == 2
    assert str(t.schema)
    assert t.files("id = 1").num_rows == 1


@pytest.mark.parametrize("kind", ["struct", "array", "map"])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 300])
def test_more_levels_are_refused(build, kind: str, levels: int) -> None:
    with pytest.raises(CorruptTable) as caught:
        alluvium.open(build([column("n", nested(kind, levels))]).write())
    assert caught.value.code == "invalid-schema"
    assert caught.value.column is not None


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"type":"struct","fields":[' * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000, '"' + "x" * 10_000_000 + '"',
     '{"type":"struct","fields":' + "[" * 900 + "]" * 900 + "}", "1" * 1_000_000, "\ufeff{}", "{" + '"type":"struct",' * 100_000 + '"fields":[]}' ],
)  # fmt: skip
def test_schemas_that_would_exhaust_a_parser(text: str) -> None:
    try:
        assert parse_schema(text) == Struct(())
    except CorruptTable as error:
        assert error.code == "invalid-schema"
        assert len(str(error)) < 1000


@pytest.mark.long
def test_ten_thousand_columns(build) -> None:
    table = build([column(f"c{i}", "long") for i in range(10_000)])
    bounds = {f"c{i}": i for i in range(10_000)}
    wide = {"numRecords": 1, "minValues": bounds, "maxValues": bounds, "nullCount": dict.fromkeys(bounds, 0)}
    for version in range(2, 22):
        table.commit(version, add(f"missing-{version}.parquet", 10, stats=json.dumps(wide)))
    t = alluvium.open(table.write())
    assert len(t.schema.names) == 10_001
    assert t.files("c77 > 77 and c9999 = 9999").num_rows == 2  # those without statistics of these columns
    three = t.to_arrow(
        columns=["id", "c1", "c9999"], where="c5 is null and c6 <> 6 or id = 1 and c8 is null and c9 = 8"
    )
    assert three.num_rows == 0
    assert alluvium.open(str(table.root), version=1).to_arrow().num_columns == 10_001


# -- numbers ----------------------------------------------------------------------------------------------------------

_TYPES = ("decimal(10,2)", "date", "timestamp", "timestamp_ntz", "byte", "long", "boolean", "float", "double")
_VALUES = ("9" * 400, "1e999999999", "9999-99-99", "+294247-01-10 04:00:54.775808", "-1000000-01-01", "0x10", "\u0661", "1_000", "--1", "true ", "nul\0l")  # fmt: skip


@pytest.mark.parametrize("kind", _TYPES)
@pytest.mark.parametrize("value", _VALUES)
def test_partition_values_out_of_range(build, kind: str, value: str) -> None:
    """ "Partition values are stored as strings, using the following formats" """
    table = build([column("p", kind)], ["p"], ["timestampNtz"]).commit(2, add("f0.parquet", 10, {"p": value}))
    root = table.write()
    t = alluvium.open(root)
    if value == "9" * 400 and kind in ("float", "double"):
        assert t.to_arrow().num_rows == 2  # an infinite number, as in Java
        return
    if value == "1e999999999" and kind in ("float", "double"):
        assert t.to_arrow().num_rows == 2
        return
    if (value == "true " and kind == "boolean") or (kind == "date" and value[0] in "+-" and value[1].isdigit()):
        assert t.to_arrow().num_rows == 2  # as Spark casts them
        return
    with pytest.raises(CorruptTable) as caught:
        t.to_arrow()
    assert (caught.value.code, caught.value.column) == ("invalid-partition-value", "p")


@pytest.mark.parametrize(
    "bound", ["9" * 400, 10**400, 1e308, "NaN", "-Infinity", True, None, [], {"a": 1}, "9999-99-99", "+294247-01-10T04:00:54.775808Z", "\ud7ff", 2**63, -(2**63) - 1]
)  # fmt: skip
@pytest.mark.parametrize(
    "kind", ["decimal(10,2)", "date", "timestamp", "long", "double", "string", "boolean", "binary"]
)
def test_statistics_out_of_range_skip_nothing(build, kind: str, bound: object) -> None:
    """Statistics only save work: what makes no sense is unknown, and the file is read."""
    statistics = {"numRecords": 1, "minValues": {"c": bound}, "maxValues": {"c": bound}, "nullCount": {"c": 10**30}}
    t = alluvium.open(build([column("c", kind)]).commit(2, add("f0.parquet", 10, stats=json.dumps(statistics))).write())
    where = {
        "date": "c > '2024-01-01'",
        "timestamp": "c > '2024-01-01'",
        "string": "c > 'a'",
        "boolean": "c",
        "binary": "c is null",
    }
    assert t.files(where.get(kind, "c > 1")).num_rows <= 2
    assert t.files("c is null").num_rows == 2
    assert t.to_arrow(where="c is null").num_rows == 2


@pytest.mark.parametrize("vector", [
    {"sizeInBytes": 2**31 - 1}, {"offset": 2**31 - 1}, {"sizeInBytes": -1}, {"offset": -1}, {"cardinality": 2**63 - 1}, {"cardinality": -1},
    {"cardinality": 5}, {"sizeInBytes": 0}, {"storageType": "i", "pathOrInlineDv": "0" * 1_000_000, "sizeInBytes": 2**31 - 1},
    {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", "sizeInBytes": 2**31 - 1},
    {"storageType": "i", "pathOrInlineDv": "\u00e9\u00e9\u00e9\u00e9\u00e9"},
])  # fmt: skip
def test_figures_of_deletion_vectors_out_of_range(build, vector) -> None:
    whole = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 1,
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    table = build(features=["deletionVectors"]).commit(
        2, remove("f0.parquet"), add("f0.parquet", 10, deletionVector={**whole, **vector})
    )
    table.put("ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", b"\x01\x7f\xff\xff\xff" + bytes(100))
    with pytest.raises(CorruptTable) as caught:
        alluvium.open(table.write()).to_arrow()
    assert caught.value.code in ("damaged-deletion-vector", "malformed-z85")


@pytest.mark.parametrize(
    "vector",
    [{"sizeInBytes": 2**31}, {"offset": 2**31}, {"cardinality": 2**63}, {"sizeInBytes": "40"}, {"sizeInBytes": 4.5}],
)
def test_figures_of_deletion_vectors_that_are_no_numbers_of_the_protocol(build, vector) -> None:
    whole = {"storageType": "i", "pathOrInlineDv": "00000", "sizeInBytes": 4, "cardinality": 6}
    with pytest.raises(CorruptTable) as caught:
        alluvium.open(
            build(features=["deletionVectors"])
            .commit(2, remove("f0.parquet"), add("f0.parquet", 10, deletionVector={**whole, **vector}))
            .write()
        )
    assert (caught.value.code, caught.value.version) == ("damaged-line", 2)


@pytest.mark.parametrize(
    "kind", ["decimal(10,2)", "decimal(38,38)", "byte", "long", "double", "date", "timestamp", "string"]
)
@pytest.mark.parametrize(
    "number",
    ["1e999999999", "-1e999999999", "1e-999999999", "1e99999999999999999999", "1." + "0" * 100_000, "9" * 100_000],
)
def test_statistics_with_numbers_that_would_fill_the_memory(build, kind: str, number: str) -> None:
    text = f'{{"numRecords":1,"minValues":{{"c":{number}}},"maxValues":{{"c":{number}}},"nullCount":{{"c":1}}}}'
    t = alluvium.open(build([column("c", kind)]).commit(2, add("f0.parquet", 10, stats=text)).write())
    assert t.files("c is null").num_rows == 2


def test_times_that_no_calendar_has(build) -> None:
    table = build(configuration={"delta.enableInCommitTimestamps": "true"})
    for number, time_ms in enumerate((2**63 - 1, -(2**63), 10**30, "x", None)):
        info = {"timestamp": time_ms, "inCommitTimestamp": time_ms, "readVersion": 10**30}
        table.put(table.table.log(2 + number), json.dumps({"commitInfo": info}).encode())
    assert len(alluvium.open(table.write()).history()) == 7


# -- names of log files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["09223372036854775808.json", "99999999999999999999.json", "99999999999999999999.checkpoint.parquet",
                                  "00000000000000000002.99999999999999999999.compacted.json", "00000000000000000005.00000000000000000002.compacted.json",
                                  "00000000000000000002.checkpoint.0000000002.0000000001.parquet", "00000000000000000002.checkpoint.0000000000.0000000000.parquet",
                                  "2.json", "0000000000000000002.json", "000000000000000000002.json", "00000000000000000002.json.crc", "\u0660" * 20 + ".json", "-0000000000000000002.json"])  # fmt: skip
def test_names_that_are_litter(build, name: str) -> None:
    t = alluvium.open(build().put(f"_delta_log/{name}", b'{"commitInfo":{}}\n').write())
    assert (t.version, t.to_arrow().num_rows) == (1, 2)


@pytest.mark.parametrize("version", [2**63 - 1, 1_000_000, 10**12])
def test_a_gap_of_millions_of_versions(build, version: int) -> None:
    """ "A table has a single serial history of atomic versions, which are named using contiguous [...] integers." """
    root = build().put(f"_delta_log/{version:020}.json", b'{"commitInfo":{}}\n').write()
    with pytest.raises(CorruptTable) as caught:
        alluvium.open(root)
    assert (caught.value.code, caught.value.version) == ("gap-in-log", 2)
    assert alluvium.open(root, version=1).to_arrow().num_rows == 2


def test_a_checkpoint_of_many_parts_that_are_not_there(build) -> None:
    name = "_delta_log/00000000000000000001.checkpoint.0000000001.9999999999.parquet"
    assert alluvium.open(build().put(name, b"PAR1").write()).to_arrow().num_rows == 2


# -- lines ------------------------------------------------------------------------------------------------------------


def test_a_key_that_stands_twice_counts_as_it_stands_last(build) -> None:
    """As in Java's parser; delta-spark 4.4 reads it so (measured)."""
    table = build()
    text = table.table.files[table.table.log(1)].replace(
        b'{"add": {"path": ', b'{"add": {"path": "nowhere.parquet", "path": '
    )
    assert alluvium.open(table.put(table.table.log(1), text).write()).to_arrow().num_rows == 2


@pytest.mark.parametrize("change", [lambda d: b"\xef\xbb\xbf" + d, lambda d: d.replace(b"\n", b"\r\n"), lambda d: d.replace(b"\n", b"\n\n \t\n"), lambda d: d.rstrip(b"\n"),
                                    lambda d: d + b" " * 1_000_000 + b"\n", lambda d: d + b'{"future":"' + b"x" * 20_000_000 + b'"}\n'])  # fmt: skip
def test_line_ends_and_marks_that_change_nothing(build, change) -> None:
    table = build()
    for version in range(2):
        table.put(table.table.log(version), change(table.table.files[table.table.log(version)]))
    t = alluvium.open(table.write())
    assert t.to_arrow().num_rows == 2
    assert [row["operation"] for row in t.history()] == ["WRITE", "WRITE"]


@pytest.mark.parametrize("change", [lambda d: d.replace(b"\n", b" "), lambda d: d.replace(b",", b",\n"), lambda d: d.decode().encode("utf-16"), lambda d: b"[" * 100_000 + b"\n" + d,
                                    lambda d: d + b'{"add":' * 100_000, lambda d: d + b"\xff\xfe\n", lambda d: d + b'{"add":{"path":"\xed\xa0\x80"}}\n', lambda d: d + b"null\n", lambda d: d + b"[]\n"])  # fmt: skip
def test_lines_that_are_no_actions(build, change) -> None:
    """ "every action is stored as a single-line JSON document" """
    table = build()
    root = table.put(table.table.log(1), change(table.table.files[table.table.log(1)])).write()
    with pytest.raises(CorruptTable) as caught:
        alluvium.open(root)
    assert (caught.value.code, caught.value.version) == ("damaged-line", 1)


# -- Parquet ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_checkpoint_that_is_small_on_disk_and_large_in_memory(build) -> None:
    """300 MB of one repeated value in some kilobytes: columns that nobody asks for are never decoded."""
    bomb = pa.array(["x" * 1_000_000], pa.string()).take(pa.array([0] * 300, pa.int32()))
    sink = io.BytesIO()
    pq.write_table(pa.table({"future": bomb}), sink, compression="zstd", use_dictionary=True)
    table = build().put("_delta_log/00000000000000000001.checkpoint.parquet", sink.getvalue())
    assert len(sink.getvalue()) < 1_000_000
    before = pa.total_allocated_bytes()
    with pytest.warns(UserWarning, match="no protocol"):
        assert alluvium.open(table.write()).to_arrow().num_rows == 2
    assert pa.default_memory_pool().max_memory() - before < 2**31


def test_a_removed_file_that_was_never_there(build) -> None:
    root = build().commit(2, remove("nowhere.parquet", size=2**63 - 1)).write()
    assert alluvium.open(root).to_arrow().num_rows == 2


@pytest.mark.parametrize("size", [2**63 - 1, -1, 0])
def test_sizes_of_files_that_are_wrong(build, size: int) -> None:
    table = build()
    root = table.commit(2, remove("f0.parquet"), add("f0.parquet", size)).write()
    t = alluvium.open(root)
    assert t.files().num_rows == 2
    try:
        assert t.to_arrow().num_rows == 2
    except AlluviumError as error:
        assert error.code == "damaged-file"
