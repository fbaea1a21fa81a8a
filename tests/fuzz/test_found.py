"""What the fuzzer has found: one small input each, which must give an answer or an error of ours."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz_footers import varint, with_orc_footer
from fuzz_paimon import TABLES, run_case
from fuzz_tables import FuzzTable, classic
from fuzz_targets import make_target
from pyarrow import orc

from alluvium.codecs.avro.avro_container import MAGIC
from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.codecs.footers.spark_schema import stored_schema
from alluvium.delta.log.names import checkpoint_paths
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import AlluviumError, CorruptTable, UnsupportedFeature
from alluvium.paimon.files.manifest import decode_manifests, live_entries, read_index_manifest
from alluvium.paimon.files.manifest_write import format_index_manifest, format_manifest_list
from alluvium.paimon.files.unknown_fields import others_type, pack
from alluvium.paimon.terms.spec import INDEX_ENTRIES, MANIFESTS
from alluvium.schema.types import Decimal
from alluvium.storage.stores.memory import MemoryStore

#: Bytes that are no UTF-8, in a JSON text.
NO_TEXT = b'{"commitUser":"\xff","tableId":"\xff","user":"\xff","id":"\xff"}'
#: Deeper than any document is nested, and than decoders go.
DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def answer(act: Callable[[], object]) -> str:
    """`ok`, or the code of an error of ours; what else is raised comes through."""
    try:
        act()
    except AlluviumError as error:
        return error.code
    return "ok"


def played(target: str, data: bytes) -> str:
    return make_target(target).play(data)


# -- JSON that is no text, or too deep --------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [NO_TEXT, DEEP], ids=["no text", "deep"])
@pytest.mark.parametrize("number", range(5))
def test_small_files_of_paimon_that_are_no_text_or_too_deep(number: int, data: bytes) -> None:
    assert played("paimon-small-files", bytes([number]) + data)


@pytest.mark.parametrize(
    "data", [b"null", b"[]", b"7", b'"x"', b"{}", b'{"nextSnapshot":"x"}', b'{"nextSnapshot":null}']
)
def test_system_table_of_consumers_that_say_nothing(data: bytes) -> None:
    assert played("paimon-small-files", b"\x02" + data)


@pytest.mark.parametrize(
    "data", [b"null", b"[]", b"7", b'{"snapshotId":"x"}', b'{"mergedRecordCount":1e99}', b"{", b""]
)
def test_system_table_of_statistics_that_say_nothing(data: bytes) -> None:
    assert played("paimon-small-files", b"\x03" + data)


@pytest.mark.parametrize(
    "data", [b'"\xf1"', b"{", DEEP, b"[1" + b"0" * 400 + b"]"], ids=["no text", "cut off", "deep", "large"]
)
def test_system_table_of_schemas_that_say_nothing(data: bytes) -> None:
    assert played("paimon-small-files", b"\x05" + data) == "invalid-schema"


@pytest.mark.parametrize("data", [NO_TEXT, DEEP], ids=["no text", "deep"])
@pytest.mark.parametrize("number", range(5))
def test_small_files_of_delta_that_are_no_text_or_too_deep(number: int, data: bytes) -> None:
    assert played("delta-small-files", bytes([number]) + data)


@pytest.mark.parametrize("target", ["paimon-snapshot", "paimon-tag"])
def test_a_snapshot_that_is_no_text(target: str) -> None:
    assert played(target, NO_TEXT) == "invalid-snapshot"


def test_a_log_of_a_streams_columns_that_is_no_text() -> None:
    assert played("delta-tracking-log", b"v1\n" + NO_TEXT) == "tracking-log-damaged"


def test_deep_members_of_a_log_of_a_streams_columns() -> None:
    assert played("delta-tracking-log", b"v1\n" + DEEP) == "tracking-log-damaged"


@pytest.mark.parametrize("target", ["delta-offset", "paimon-offset"])
def test_an_offset_that_is_too_deep(target: str) -> None:
    assert played(target, DEEP) == "invalid-offset"


def test_a_spark_schema_in_a_footer_that_is_no_text() -> None:
    sink = io.BytesIO()
    said = {b"org.apache.spark.sql.parquet.row.metadata": b'"\x9b"'}
    pq.write_table(pa.table({"id": [1]}).replace_schema_metadata(said), sink)
    footer = pq.read_metadata(io.BytesIO(sink.getvalue()))
    assert stored_schema(footer).names == ("id",)


# -- Delta ------------------------------------------------------------------------------------------------------------

VOID = {"name": "v", "type": "void", "nullable": False, "metadata": {}}
MAP = {"name": "m", "type": {"type": "map", "keyType": "void", "valueType": "long", "valueContainsNull": True},
       "nullable": True, "metadata": {}}  # fmt: skip
LIST = {"name": "l", "type": {"type": "array", "elementType": "void", "containsNull": False}, "nullable": True,
        "metadata": {}}  # fmt: skip


@pytest.mark.parametrize("column", [VOID, MAP, LIST], ids=["column", "key", "element"])
def test_void_that_may_not_be_null(column: object) -> None:
    assert played("delta-schema", json.dumps({"type": "struct", "fields": [column]}).encode())


def with_text(table: FuzzTable, name: str, texts: Sequence[bytes]) -> MemoryStore:
    """A table in whose checkpoint files have other bytes for a text."""
    path = checkpoint_paths(3)[0]
    whole = pq.read_table(io.BytesIO(table.files[path]))
    adds = whole["add"].combine_chunks()
    todo = iter(texts)
    given = pa.array([None if row is None else next(todo) for row in adds.to_pylist()], pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(given), given.buffers())
    place = adds.type.get_field_index(name)
    members = [text if n == place else adds.field(n) for n in range(adds.type.num_fields)]
    made = pa.StructArray.from_arrays(members, fields=list(adds.type), mask=adds.is_null())
    table.data(path, whole.set_column(whole.schema.get_field_index("add"), "add", made))
    return table.store()


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_checkpoint_with_a_path_that_is_no_text(large: bool) -> None:
    store = with_text(classic(), "path", [b"\xff%20" + str(n).encode() for n in range(9)])

    def read() -> None:
        snapshot = load_snapshot(store, 3, **({"max_checkpoint_bytes": 0} if large else {}))
        snapshot.map_files(lambda files: files["path"].to_pylist())

    assert answer(read) != "ok"


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_checkpoint_with_statistics_that_are_no_text(large: bool) -> None:
    """Which writers make that cut bounds within a character: they tell nothing, and the others what they told."""
    told = load_snapshot(classic().store(), 3).files["stats"].to_pylist()
    assert len(told) > 2 and None not in told
    given = [text.encode() for text in told]
    given[1] = given[1][:-1] + b"\xc3}"
    store = with_text(classic(), "stats", given)
    snapshot = load_snapshot(store, 3, **({"max_checkpoint_bytes": 0} if large else {}))
    found = [text for texts in snapshot.map_files(lambda files: files["stats"].to_pylist()) for text in texts]
    assert sorted(found, key=str) == sorted([told[0], None, *told[2:]], key=str)


# -- data files -------------------------------------------------------------------------------------------------------


def test_avro_whose_columns_have_no_names() -> None:
    schema = b'{"type":"record","name":"s","fields":[{"name":NaN,"type":"long"}]}'
    assert played("avro-schema", schema) not in ("ok", "rows")


@pytest.mark.parametrize("items", [1.5, None, [None], {"type": "array", "items": 1.5}, {}], ids=str)
def test_avro_whose_elements_have_no_type(items: object) -> None:
    """Of lists that are empty nobody decodes them."""
    kind = {"type": "array", "items": items}
    schema = {"type": "record", "name": "s", "fields": [{"name": "a", "type": kind}]}
    assert played("avro-schema", json.dumps(schema).encode()) not in ("ok", "rows")


#: Files of two columns that were changed here and there.
ORC = {
    "a name is no text": (
        "4f52431100000a061204080350002b00000a130a0300000012050000ffa007000312d90000080310ac011a0a0803104318172052280322"
        "13080c120201021a0269e41a0173200028003000220808042000280030002208080720002800300030033a04080350003a0c0803120608"
        "021006180c50003a0e080222080a01611201631804500140904e48016205322e322e32086f1005188080042202000c2829300682fc0303"
        "4f524317"
    ),
    "the rows are a union": (
        "4f52431100a007000312d90000080310ac011a0a080310431817205228032213080e120201021a0269641a017320002800300022080804"
        "2000280030002208080720002800300030033a04080350003a0c0803120608021006180c50003a0e080222080a01611201631804500140"
        "904e48016205322e322e32086f1005188080042202000c2829310682fc03034f524317"
    ),
    # Arrow ends the process.
    "a decimal of 42992 digits": (
        "4f52430a0612040803500a0908022a030a01015001080310a6041a0c080310da011841208b0228032228080c1207010203040506081a02"
        "69641a01731a01641a0261741a01661a016c1a016220002800300022080804200028003000220808072000280030002208080e200028f0"
        "cf022208081220002800300022080806200028003000220b080a1201072000280030002208080320002800300022080800200028003000"
        "30033a04080350003a0c0803120608021006180c50003a0e080222080a0161120163180450013a0f080232090a01311201321a01335001"
        "3a1108024a0b1800308080f4f6905d300150013a2108021a1b09000000000000f0bf11000000000000e03f19000000000000e0bf50013a"
        "0c0802500162060800100118013a0c0801120608021002180250003a0908022a030a0101500140904e48016205322e322e3208b0021000"
        "188000800402220c289501300682f403034f524319"
    ),
    # Of the two codecs the first counts, for the second is none.
    "a decimal of 42992 digits, and a codec that there is not": (
        "4f52035001080310a6041a0c080310da011841208b0228032228080c1207010203040506081a0269641a01731a01641a0261741a01661a"
        "016c1a0162200028003000220808042000280030002208083f2000280030002208080e200028f0cf022208081220002800300022080806"
        "200028003000220b080a120107200028003000220808032000280030002208080020002800300030033a04080350003a0c080312060802"
        "1006180850003a0e080222080a0161120163180450013a0f080232090a01311201321a013350013a1108024a0b1800208080f4f6905d30"
        "0150013a2108021a1b09000000000000f0bf11000000000000e03f19000000000000e0bf50013a0c0802500162060800100118013a0c08"
        "01120608021002180250003a0908022a030a0101500140904e48016205322e322e3208b0021000108080042202000c289501300682f403"
        "034f524319"
    ),
}


def ended(target: str, data: bytes) -> str:
    """The same in a process of its own, which it may end."""
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import fuzz_targets\n"
        f"print(fuzz_targets.make_target({target!r}).play(sys.stdin.buffer.read()))"
    )
    run = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr.decode(errors="replace")[-2000:]
    return run.stdout.decode().strip()


@pytest.mark.parametrize("name", ORC)
def test_orc_that_was_changed(name: str) -> None:
    assert ended("orc-rows", bytes.fromhex(ORC[name])) in ("damaged-file", "unsupported-file-type")


def test_orc_with_texts_of_a_fixed_length_that_are_no_text() -> None:
    """Whose blanks are taken away."""
    sink = io.BytesIO()
    orc.write_table(pa.table({"s": ["abcd", "efgh"]}), sink, compression="uncompressed")
    data = sink.getvalue()
    for before, after in ((b"abcdefgh", b"abcdefg\xff"), (b'"\x08\x08\x07 \x00', b'"\x08\x08\x11 \x05')):
        assert data.count(before) == 1
        data = data.replace(before, after)
    assert played("orc-rows", data) == "damaged-file"


def _set(tree: list[Any], numbers: Sequence[int], value: int) -> None:
    """A field of a tree at a path, of the last message of each number."""
    found = [field for field in tree if field[0] == numbers[0]][-1]
    if len(numbers) > 1:
        _set(found[2], numbers[1:], value)
    else:
        found[2] = value


@pytest.mark.parametrize("count", [-1, 2**31, 2**40, 2**63 - 1])
@pytest.mark.parametrize("is_told", [False, True])
def test_orc_with_a_stripe_of_too_many_rows(count: int, is_told: bool) -> None:
    """`numberOfRows` of a stripe, and of the file: Arrow ends the process, or takes the memory."""
    sink = io.BytesIO()
    orc.write_table(pa.table({"a": [1, 2, 3]}), sink, compression="uncompressed")
    data = with_orc_footer(sink.getvalue(), lambda tree: _set(tree, (3, 5), count))
    data = with_orc_footer(data, lambda tree: _set(tree, (6,), count)) if is_told else data
    assert played("orc-rows", data) == "damaged-file"


@pytest.mark.parametrize(("field", "value"), [(5, 39), (5, -1), (6, 39), (6, -(2**31))])
def test_orc_with_decimals_that_there_are_not(field: int, value: int) -> None:
    """`precision` and `scale`: Arrow ends the process."""
    sink = io.BytesIO()
    orc.write_table(pa.table({"d": pa.array([1], pa.decimal128(10, 2))}), sink, compression="uncompressed")
    assert played("orc-rows", sink.getvalue()) == "rows"
    data = with_orc_footer(sink.getvalue(), lambda tree: _set(tree, (4, field), value))
    assert played("orc-rows", data) == "damaged-file"


@pytest.mark.parametrize("size", [2**23 + 1, 2**40, 2**63 - 1])
def test_orc_with_chunks_that_are_too_large(size: int) -> None:
    """`compressionBlockSize`: Arrow ends the process."""
    sink = io.BytesIO()
    orc.write_table(pa.table({"a": [1, 2, 3]}), sink, compression="zstd")
    data = sink.getvalue()
    length = data[-1]
    written = b"\x10\x05\x18" + varint(65536)
    postscript = data[-1 - length : -1]
    assert postscript.count(written) == 1
    made = postscript.replace(written, b"\x10\x05\x18" + varint(size))
    assert played("orc-rows", data) == "rows"
    assert played("orc-rows", data[: -1 - length] + made + bytes([len(made)])) == "damaged-file"


def test_a_manifest_in_orc_with_a_decimal_of_42992_digits() -> None:
    """Which ends the process as files of rows do."""
    for data in list(ORC.values())[-2:]:
        assert ended("paimon-manifest", b"ORC" + bytes.fromhex(data)[3:]) == "damaged-manifest"


def parquet(rows: pa.Table, before: bytes = b"", after: bytes = b"") -> bytes:
    """A file in whose footer some bytes stand for others."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, store_schema=False)
    whole = sink.getvalue()
    length = int.from_bytes(whole[-8:-4], "little")
    body, footer = whole[: -8 - length], whole[-8 - length : -8]
    assert before in footer
    changed = footer.replace(before, after)
    return body + changed + len(changed).to_bytes(4, "little") + b"PAR1"


def test_orc_whose_streams_are_not_where_they_should_be() -> None:
    """A length of one of them is missing: of what is then read as lengths of texts, Arrow ends the process."""
    data = (
        "4f52431100000a061204080350002b00000a130a03000000120c0803120608021006180c50003b00000a1b0a09000000000000000000120e"
        "080222080a01611201631804500109000046023460050000ffa00700004001c005000061639f00000a0608061000180b0a06080610011818"
        "0a020806100218200a060801100118070a060800100218050a060802100218060a0608011002180512040800100012040802100012040802"
        "10001a03474d544d5001d90000080310ac011a0a080310431817205228032213080c120201021a0269641a01732000280030002208080420"
        "00280030002208080720002800300030033a04080350003a0c0803120608021006180c50001a0e080222080a01611201631804500140904e"
        "48016205322e322e32086f1005180022002829300682f403034f524313"
    )
    assert ended("orc-rows", bytes.fromhex(data)) == "damaged-file"


@pytest.mark.parametrize("target", ["parquet-footer", "parquet-rows", "parquet-pages"])
def test_parquet_with_a_bound_that_is_cut_off(target: str) -> None:
    """Arrow ends the process where it makes a number of the three bytes of a bound."""
    value = (77).to_bytes(8, "little")
    data = parquet(pa.table({"id": pa.array([77], pa.int64())}), b"\x18\x08" + value, b"\x18\x03" + value[:3])
    assert ended(target, data)


@pytest.mark.parametrize("target", ["parquet-footer", "parquet-rows", "parquet-pages"])
def test_parquet_with_a_column_whose_name_is_no_text(target: str) -> None:
    assert played(target, parquet(pa.table({"id": [1], "x\u00e9": [2]}), b"x\xc3\xa9", b"x\xff\xff"))


def test_parquet_with_nothing_but_a_name_that_is_no_text() -> None:
    data = "142c1504193c48001504004801c3004800001601190c191c18001800254e3100001f00000050415231"
    assert played("parquet-rows", bytes.fromhex(data)) == "damaged-file"


@pytest.mark.parametrize("name", ["s", "add", "protocol", "remove", "more"])
def test_parquet_of_many_rows_without_a_leaf(name: str) -> None:
    """Arrow takes memory for as many batches as it is told of, and ends the process."""
    group = bytes([0x48, len(name)]) + name.encode()
    schema = b"\x15\x02\x19\x3c\x48\x00\x15\x04\x00" + b"\x48\x01x\x00" + group + b"\x00"
    rows = b"\x16\x04\x19\x1c\x19\x0c\x16\x01\x16" + varint(2**64 - 2) + b"\x26\x14\x00\x00"
    footer = schema + rows
    data = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert played("parquet-rows", data) == ("rows" if name in ("add", "protocol", "remove") else "damaged-file")
    assert played("delta-checkpoint", data) == "damaged-checkpoint"


def test_parquet_with_a_group_without_members() -> None:
    """Arrow gives no column of it."""
    data = (
        "5000031502193c480015040015043800003502180173001606191c193c264a1c1504193500060619081500160616001604265426021c2800"
        "160e3800121100190c3c00060000000026001c151219150019081502164a1604167c260126041c36025200350e3c2906190600000026001c"
        "1504194500060e0019081500160616011604265426021c280100160e3800121100190c2500060000000016011604261600060219bc00191c"
        "0000a700000050415231"
    )
    assert played("parquet-rows", bytes.fromhex(data)) == "damaged-file"


def test_parquet_by_a_writer_whose_name_is_no_text() -> None:
    assert played("parquet-footer", parquet(pa.table({"id": [1]}), b"parquet-cpp", b"parquet-\xffpp"))


def test_a_checkpoint_with_a_column_whose_name_is_no_text() -> None:
    data = parquet(pa.table({"add": [{"path": "x"}], "x\u00e9": [2]}), b"x\xc3\xa9", b"x\xff\xff")
    assert played("delta-checkpoint", data) == "damaged-checkpoint"


#: Of the file's bounds one is a decimal that is no number.
NO_DECIMAL = (
    "4f52431100000a061204080350002b00000a134400e0bf50010a0c0802500162050800100118012e01180200b002f040080310a7041a"
    "0c080310f501187460be0128032228080c1207010203040506081a0269641a01731a01641a0261741a01661a016c1a01622000280030"
    "0022080804150a0007150a280e2000280a300222080812151400060d0a100b080a1201192b00030d1708080800090af05b30033a0408"
    "0350003a0c0803120608021006180c50003a0e080222080a0161120163180450013a0f080232090a01311201121a013350013a110802"
    "4a0b1800208080f4f6905d300150013a2108021a1b09002000000000f0bf110000010908e03f19010748002101000000000000025001"
    "62060800100118010e000105736c02180250003a0908022a030a0101500140904e48016205322e322e32088f02100218808004220200"
    "0c289501300682f403034f524319"
)


def test_orc_with_a_bound_that_is_no_decimal() -> None:
    assert played("orc-footer", bytes.fromhex(NO_DECIMAL)) == "damaged-file"


# -- manifests --------------------------------------------------------------------------------------------------------


def container(schema: object, *records: bytes) -> bytes:
    """An Avro container with one block."""

    def long(number: int) -> bytes:
        found = number << 1
        groups = [found >> shift & 127 for shift in range(0, max(found.bit_length(), 1), 7)]
        return bytes(group | 128 for group in groups[:-1]) + bytes(groups[-1:])

    def piece(data: bytes) -> bytes:
        return long(len(data)) + data

    head = MAGIC + long(1) + piece(b"avro.schema") + piece(json.dumps(schema).encode()) + long(0) + bytes(16)
    body = b"".join(records)
    return head + long(len(records)) + piece(body) + bytes(16)


@pytest.mark.parametrize("fields", [[{"type": "int"}], [{"name": "_FILE", "type": {"type": "record", "name": "f", "fields": [{"type": "int"}]}}]],
                         ids=["top", "within"])  # fmt: skip
def test_a_manifest_of_fields_without_names(fields: list[object]) -> None:
    data = container({"type": "record", "name": "r", "fields": fields}, *[b"\x02"] * 3)
    assert played("paimon-manifest", data) != "ok"


def test_a_manifest_list_where_a_manifest_should_be() -> None:
    listed = pa.Table.from_pylist([{"file_name": "x", "file_size": 1, "num_added_files": 1, "num_deleted_files": 0,
                                    "schema_id": 0, "partition_min": b"", "partition_max": b""}], MANIFESTS)  # fmt: skip
    deleted = container(
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": "_VERSION", "type": "int"}, {"name": "_KIND", "type": "int"}],
        },
        b"\x04\x02",
    )
    files = [("manifest/a", format_manifest_list(listed, "null")), ("manifest/b", deleted)]
    assert answer(lambda: live_entries(decode_manifests(files))) != "ok"


def test_a_manifest_with_two_fields_of_one_name() -> None:
    """That nobody here knows, and which have to be kept."""
    field = {"name": "_MORE", "type": ["null", {"type": "record", "name": "m", "fields": [
        {"name": "f0", "type": "string"}, {"name": "f0", "type": "int"}]}]}  # fmt: skip
    with pytest.raises(CorruptTable) as caught:
        pack([{"_MORE": {"f0": 1}}], others_type({"fields": [field]}, []))
    assert "not of its schema" in caught.value.message


@pytest.mark.parametrize("path", [("_BUCKET",), ("_FILE", "_ROW_COUNT"), ("_FILE", "_EXTRA_FILES")], ids=str)
def test_a_manifest_in_orc_with_two_fields_of_one_name(path: tuple[str, ...]) -> None:
    members = [pa.array([1]), pa.array([2])]
    if len(path) > 1:
        within = pa.StructArray.from_arrays([*members, pa.array([["x"]])], [path[1], path[1], "other"])
        members, names = [within], [path[0]]
    else:
        names = [path[0]] * 2
    sink = io.BytesIO()
    orc.write_table(pa.Table.from_arrays([pa.array([2], pa.int32()), *members], ["_VERSION", *names]), sink)
    with pytest.raises(CorruptTable, match=f"two fields are called '{path[-1]}'") as caught:
        decode_manifests([("manifest-1", sink.getvalue())])
    assert caught.value.code == "damaged-manifest"


@pytest.mark.parametrize("kind", [{"items": "int"}, {"type": "enum"}, {"type": "array", "items": 1.5}], ids=str)
def test_an_index_manifest_with_unknown_fields_without_types(kind: object) -> None:
    """Of lists that are empty nobody decodes the elements."""
    more = {"name": "_MORE", "type": {"type": "array", "items": ["null", kind]}}
    schema = {"type": "record", "name": "r", "fields": [{"name": "_VERSION", "type": "int"}, more]}
    store = MemoryStore(uuid.uuid4().hex, "t")
    store.put("manifest/x", container(schema, b"\x02\x00"))
    assert answer(lambda: read_index_manifest(store, "x")) in ("damaged-manifest", "damaged-file")


@pytest.mark.parametrize("value", [{"x": 1}, [{"x": 1}], [1], 7], ids=str)
def test_a_manifest_in_orc_with_a_field_that_nobody_knows(value: object) -> None:
    sink = io.BytesIO()
    orc.write_table(pa.Table.from_pylist([{"_VERSION": 2, "_KIND": 0, "_MORE": value}]), sink)
    with pytest.raises(UnsupportedFeature) as caught:
        decode_manifests([("x", sink.getvalue())])
    assert (caught.value.code, caught.value.features) == ("unknown-manifest-field", ("_MORE",))


def test_an_index_manifest_with_a_range_that_is_null() -> None:
    entry = {"kind": 0, "partition": b"\0\0\0\0" + bytes(8), "bucket": 0, "index_type": "DELETION_VECTORS", "file_name": "x",
             "file_size": 1, "row_count": 1, "ranges": [None]}  # fmt: skip
    data = format_index_manifest(pa.Table.from_pylist([entry], INDEX_ENTRIES), "null")
    assert played("paimon-index-manifest", data) != "ok"


def test_a_decimal_in_a_row_of_bytes_of_more_digits_than_its_column_has() -> None:
    row = (1).to_bytes(4, "big") + bytes(8) + (10**12).to_bytes(8, "little")

    def read() -> None:
        (values,) = decode_rows(pa.array([row], pa.binary()), [(Decimal(10, 2), 0)])
        values.validate(full=True)

    assert answer(read) in ("ok", "damaged-row")


# -- whole tables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [45])
def test_damaged_tables_of_paimon(case: int) -> None:
    outcome, told = run_case(case, [make() for make in TABLES])
    assert not outcome.startswith("FOREIGN"), "; ".join(told)
