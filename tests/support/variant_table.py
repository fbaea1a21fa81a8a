"""A table with variants that are shredded otherwise in every file, written without Spark."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import LONG, VARIANT, Field, Struct

SCHEMA = Struct((Field("id", LONG), Field("v", VARIANT)))
FEATURES = ["variantType", "variantShredding"]

_BINARY = pa.binary()
_METADATA = b"\x01\x02\x00\x01\x02ab"
_OBJECT = {"a": {"value": None, "typed_value": 1}}

#: What the table holds, as JSON by id.
TEXTS = {0: '{"a":7}', 1: None, 10: '{"a":1,"b":2}', 20: '"text"', 30: "[1.5]"}


def _group(typed: pa.DataType | None, *rows: object) -> pa.Array:
    members = [("metadata", _BINARY), ("value", _BINARY), *([] if typed is None else [("typed_value", typed)])]
    return pa.array(rows, pa.struct(members))


def _shredded(typed: pa.DataType) -> pa.Field:
    # "The group for each named field must use repetition level `required`."
    return pa.struct([("value", _BINARY), ("typed_value", typed)])


def _columns() -> list[pa.Array]:
    objects = pa.struct([pa.field("a", _shredded(pa.int64()), False)])
    arrays = pa.list_(pa.field("element", _shredded(pa.float64()), False))
    return [
        _group(None, {"metadata": _METADATA, "value": b"\x02\x01\x00\x00\x02\x0c\x07"}, None),
        _group(
            objects,
            {"metadata": _METADATA, "value": b"\x02\x01\x01\x00\x02\x0c\x02", "typed_value": _OBJECT},
        ),
        _group(pa.string(), {"metadata": _METADATA, "typed_value": "text"}),
        _group(arrays, {"metadata": _METADATA, "typed_value": [{"typed_value": 1.5}]}),
    ]


def malformed_column() -> pa.Array:
    """What stands beside the shredded fields is no object."""
    objects = pa.struct([pa.field("a", _shredded(pa.int64()), False)])
    return _group(objects, {"metadata": _METADATA, "value": b"\x05a", "typed_value": _OBJECT})


def write_variants(root: Path, columns: list[pa.Array] | None = None) -> None:
    """Writes version 0: a file for each column of variants, `id` counting on from ten times its number."""
    root.mkdir(parents=True, exist_ok=True)
    actions: list[object] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": FEATURES,
                      "writerFeatures": FEATURES}},
        {"metaData": {"id": "0", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
                      "schemaString": format_schema(SCHEMA), "configuration": {}}},
    ]  # fmt: skip
    for number, values in enumerate(_columns() if columns is None else columns):
        sink = io.BytesIO()
        ids = [number * 10 + i for i in range(len(values))]
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "v": values}), sink, store_schema=False)
        (root / f"{number}.parquet").write_bytes(sink.getvalue())
        bounds = {"id": min(ids), "v": "0rJlc5f$EczEEx[cTw04cUW9st(>6d00icd1U*?]0000000000"}
        stats = {"numRecords": len(ids), "nullCount": {"id": 0, "v": values.null_count}, "minValues": bounds,
                 "maxValues": {**bounds, "id": max(ids)}}  # fmt: skip
        actions.append(
            {"add": {"path": f"{number}.parquet", "partitionValues": {}, "size": len(sink.getvalue()),
                     "modificationTime": 0, "dataChange": True, "stats": json.dumps(stats)}}
        )  # fmt: skip
    log = root / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))
