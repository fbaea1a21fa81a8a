"""Tables that are damaged or ask for what nobody knows: our errors, with the file that is to blame, never rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_tables import HandWritten, write_readings
from pyarrow import orc
from sketch_tables import library

import alluvium
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, NotFound, UnsupportedFeature

PARTIAL = {"merge-engine": "partial-update"}
AGGREGATION = {"merge-engine": "aggregation"}


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    write_readings(tmp_path / "readings")
    return tmp_path / "readings"


def failure(root: Path, **given: Any) -> AlluviumError:
    with pytest.raises(AlluviumError) as caught:
        alluvium.open(str(root), **given).to_arrow()
    return caught.value


@pytest.mark.parametrize(
    ("options", "kind", "code", "column"),
    [
        ({"sequence.field": "no"}, CorruptTable, "invalid-options", "no"),
        ({**PARTIAL, "fields.no.sequence-group": "place"}, CorruptTable, "invalid-options", "no"),
        ({**PARTIAL, "fields.place.sequence-group": "no"}, CorruptTable, "invalid-options", "no"),
        ({**PARTIAL, "fields.value.aggregate-function": "sum"}, CorruptTable, "invalid-options", "value"),
        (
            {**AGGREGATION, "fields.place.aggregate-function": "sum"},
            UnsupportedFeature,
            "unsupported-aggregate",
            "place",
        ),
        (
            {**AGGREGATION, "fields.value.aggregate-function": "theta_sketch"},
            UnsupportedFeature,
            "unsupported-aggregate",
            "value",
        ),
        ({**AGGREGATION, "fields.value.aggregate-function": "max"}, UnsupportedFeature, "unsupported-retract", "value"),
        (PARTIAL, UnsupportedFeature, "unsupported-retract", None),
        *(
            ({"scan.mode": mode}, UnsupportedFeature, "unsupported-scan", None)
            for mode in ("incremental", "compacted-full", "from-file-creation-time", "from-creation-timestamp")
        ),
        ({"scan.snapshot-id": "three"}, InvalidRequest, "invalid-version", None),
        ({"scan.timestamp": "noon"}, InvalidRequest, "invalid-timestamp", None),
        ({"scan.snapshot-id": "1", "scan.tag-name": "noon"}, InvalidRequest, "version-and-timestamp", None),
        *(
            ({f"incremental-{option}": "1,2"}, InvalidRequest, "changes-as-of", None)
            for option in ("between", "between-timestamp", "to-auto-tag")
        ),
    ],
)
def test_options(readings: Path, options: dict[str, str], kind: type, code: str, column: str | None) -> None:
    error = failure(readings, options=options)
    assert type(error) is kind
    assert (error.code, getattr(error, "column", None)) == (code, column)


@pytest.mark.parametrize("cut", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("name", ["manifest-list-3-0", "manifest-list-3-1", "manifest-3-0", "manifest-3-1"])
def test_manifests_cut_short(readings: Path, name: str, cut: float) -> None:
    file = readings / "manifest" / name
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * cut)])
    error = failure(readings)
    assert isinstance(error, CorruptTable)
    assert error.path == f"manifest/{name}"
    assert error.version == 3
    # The state before does not name the file, and is whole.
    assert alluvium.open(str(readings), version=2).to_arrow().num_rows == 3


def test_manifests_in_orc_cut_short(readings: Path) -> None:
    file = readings / "manifest" / "manifest-list-3-1"
    orc.write_table(pa.table({"_FILE_NAME": ["manifest-3-1"]}), str(file))
    assert alluvium.open(str(readings)).to_arrow().num_rows == 2
    whole = file.read_bytes()
    for cut in (4, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        error = failure(readings)
        assert (type(error), error.path) == (CorruptTable, "manifest/manifest-list-3-1")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text[: len(text) // 2], "invalid-snapshot"),
        (lambda text: "[]", "invalid-snapshot"),
        (lambda text: text.replace('"schemaId": 0', '"schemaId": "x"'), "invalid-snapshot"),
        (lambda text: text.replace('"manifest-list-3-1"', '"../../manifest-list-3-1"'), None),
        (lambda text: text.replace('"manifest-list-3-1"', '"manifest-list-9-9"'), "missing-manifest"),
    ],
)
def test_snapshots(readings: Path, change: Callable[[str], str], code: str | None) -> None:
    file = readings / "snapshot" / "snapshot-3"
    text = file.read_text()
    assert change(text) != text
    file.write_text(change(text))
    error = failure(readings)
    assert code is None or error.code == code
    assert error.path is not None


@pytest.mark.parametrize("function", ["hll_sketch", "theta_sketch", "rbm32", "rbm64"])
def test_sketches_that_are_none(tmp_path: Path, function: str) -> None:
    if function.endswith("_sketch"):
        library()
    options = {**AGGREGATION, "fields.s.aggregate-function": function}
    table = HandWritten(
        tmp_path / "t", pa.schema([pa.field("k", pa.int64(), False), ("s", pa.binary())]), ["k"], **options
    )
    table.commit([{"k": 1, "s": b"no sketch"}])
    table.commit([{"k": 1, "s": b"nor a bitmap"}])
    error = failure(tmp_path / "t")
    assert isinstance(error, CorruptTable)
    assert error.code == ("damaged-bitmap" if function.startswith("rbm") else "damaged-sketch")
    assert error.column == "s" and str(error.url).endswith(str(tmp_path / "t"))
    # Who does not ask for the column is not held up.
    assert alluvium.open(str(tmp_path / "t")).to_arrow(columns=["k"]).to_pylist() == [{"k": 1}]


def test_a_schema_that_files_need_is_gone(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", pa.schema([("n", pa.int64())]))
    table.commit([{"n": 1}])
    schema = json.loads((tmp_path / "t/schema/schema-0").read_text())
    (tmp_path / "t/schema/schema-1").write_text(json.dumps({**schema, "id": 1}))
    assert alluvium.open(str(tmp_path / "t")).to_arrow().num_rows == 1
    (tmp_path / "t/schema/schema-0").unlink()
    error = failure(tmp_path / "t")
    assert error.code == "missing-schema"
    (tmp_path / "t/schema/schema-0").write_text(
        json.dumps({**schema, "fields": [{"id": 0, "name": "n", "type": "COMPLEX"}]})
    )
    error = failure(tmp_path / "t")
    assert isinstance(error, (CorruptTable, UnsupportedFeature))
    assert "COMPLEX" in str(error)


def test_types_between_which_there_is_no_cast(tmp_path: Path) -> None:
    table = HandWritten(tmp_path / "t", pa.schema([("n", pa.float64())]))
    table.commit([{"n": 1.0}])
    schema = json.loads((tmp_path / "t/schema/schema-0").read_text())
    changed = {**schema, "id": 1, "fields": [{"id": 0, "name": "n", "type": "DATE"}]}
    (tmp_path / "t/schema/schema-1").write_text(json.dumps(changed))
    assert failure(tmp_path / "t").code == "unsupported-cast"


def test_data_files(readings: Path) -> None:
    """A file that is gone, one of a format that nobody reads, and one that is another's."""
    file = readings / "bucket-0" / "data-3-0.parquet"
    shutil.copy(readings / "bucket-0" / "data-1-0.parquet", file.with_suffix(".keep"))
    file.write_bytes(b"PAR1 and no more")
    assert (failure(readings).code, failure(readings).path) == ("damaged-file", "bucket-0/data-3-0.parquet")
    file.unlink()
    error = failure(readings)
    assert (type(error), error.code, error.path) == (NotFound, "missing-file", "bucket-0/data-3-0.parquet")


def test_data_files_of_other_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HandWritten(tmp_path / "t", pa.schema([("n", pa.int64())]))
    make = table._data_file

    def as_lance(*given: Any) -> dict[str, Any]:
        entry = make(*given)
        entry["_FILE"]["_FILE_NAME"] = entry["_FILE"]["_FILE_NAME"].replace(".parquet", ".lance")
        return entry

    monkeypatch.setattr(table, "_data_file", as_lance)
    table.commit([{"n": 1}])
    error = failure(tmp_path / "t")
    assert (type(error), error.code) == (UnsupportedFeature, "unsupported-file-format")


def test_keys_that_are_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HandWritten(tmp_path / "t", pa.schema([pa.field("k", pa.int64(), False), ("v", pa.string())]), keys=("k",))
    make = table._data_file

    def damaged(*given: Any) -> dict[str, Any]:
        entry = make(*given)
        entry["_FILE"]["_MIN_KEY"] = entry["_FILE"]["_MIN_KEY"][:9]
        return entry

    table.commit([{"k": 1, "v": "a"}])
    monkeypatch.setattr(table, "_data_file", damaged)
    table.commit([{"k": 1, "v": "b"}])
    error = failure(tmp_path / "t")
    assert (type(error), error.code) == (CorruptTable, "damaged-row")


def test_expired_snapshots_name_what_exists(readings: Path) -> None:
    for number in (1, 2):
        (readings / "snapshot" / f"snapshot-{number}").unlink()
    error = failure(readings, version=1)
    assert (type(error), error.code) == (NotFound, "snapshot-expired")
    assert "snapshot 3" in str(error) or "snapshots 3" in str(error)
    # A tag keeps its state.
    assert alluvium.open(str(readings), tag="noon").to_arrow().num_rows == 3
    with pytest.raises(NotFound) as caught:
        alluvium.open(str(readings)).changes(0, 3)
    assert caught.value.code == "snapshot-expired"
    error = failure(readings, tag="nine")
    assert "noon" in str(error)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("timeMillis", 1 << 62),
        ("timeMillis", -(1 << 70)),
        ("totalRecordCount", 1 << 64),
        ("watermark", 10**30),
        ("id", 1 << 63),
    ],
)
def test_numbers_that_java_cannot_hold(readings: Path, member: str, value: int) -> None:
    for file in (readings / "snapshot").glob("snapshot-*"):
        file.write_text(json.dumps({**json.loads(file.read_text()), member: value}))
    assert failure(readings).code == "invalid-snapshot"


def test_a_schema_of_no_calendar_and_without_options(readings: Path) -> None:
    file = readings / "schema" / "schema-0"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "timeMillis": 1 << 62}))
    assert failure(readings).code == "invalid-schema"
    del document["options"]
    file.write_text(json.dumps(document))
    assert alluvium.open(str(readings)).system("schemas").to_pylist()[0]["options"] == "{}"
