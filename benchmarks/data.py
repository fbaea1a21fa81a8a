"""The bench's tables, made once into `.bench/` by pyarrow alone and always the same: no engine is at home in them.

Each table is a folder of Parquet files with a hand-written Delta log, so that raw Parquet readers and Delta readers
read the same bytes.
"""

from __future__ import annotations

import json
import shutil
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

SCAN_FILES = 8
POINT_FILES = 100
SMALL_COMMITS = 25
LOG_COMMITS = 30
#: 1 January 2020 UTC, milliseconds: the time of everything made here.
EPOCH_MS = 1_577_836_800_000

_DELTA_TYPES = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}
_WITH_RANGE = ("id", "day", "amount", "quantity", "customer", "name")


def ensure_table(root: Path, make: Callable[[Path], None]) -> Path:
    """Makes the table unless a finished one is there."""
    done = root / "_delta_log" / ".made"
    if not done.exists():
        shutil.rmtree(root, ignore_errors=True)
        (root / "_delta_log").mkdir(parents=True)
        make(root)
        done.touch()
    return root


def rows(count: int, start: int, seed: int) -> pa.Table:
    """`count` rows of ten columns, ids from `start` on: numbers, strings of few and many values, dates, nulls."""
    random = np.random.default_rng(seed)
    ids = np.arange(start, start + count, dtype=np.int64)
    customers = random.integers(0, 1_000_000, count)
    amounts = random.normal(100.0, 30.0, count)
    names = pc.binary_join_element_wise("name of", pc.cast(pa.array(customers % 50_000), pa.string()), " ")
    countries = pa.array(["DE", "FR", "PL", "IT", "ES", "NL", "CZ", "AT"]).take(pa.array(random.integers(0, 8, count)))
    seconds = EPOCH_MS // 1000 + ids
    return pa.table(
        {
            "id": pa.array(ids),
            "customer": pa.array(customers),
            "country": countries,
            "name": names,
            "amount": pa.array(amounts),
            "quantity": pa.array(random.integers(0, 100, count).astype(np.int32)),
            "discount": pa.array(random.random(count), mask=random.random(count) < 0.1),
            "paid": pa.array(random.random(count) < 0.7),
            "day": pa.array((18262 + ids // 20_000 % 700).astype(np.int32)).cast(pa.date32()),
            "at": pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC")),
        }
    )


def make_files(root: Path, files: int, rows_per_file: int, commits: int = 1, *, page_index: bool = False) -> None:
    """A table of files with disjoint ids, spread over equally many commits as asked."""
    adds = []
    for i in range(files):
        table = rows(rows_per_file, i * rows_per_file, seed=i)
        name = f"part-{i:05}.snappy.parquet"
        pq.write_table(table, root / name, compression="snappy", row_group_size=1_000_000, write_page_index=page_index)
        adds.append(_add(name, (root / name).stat().st_size, _statistics(table)))
    _write_commits(root, table.schema, adds, commits)


def link_table(root: Path, source: Path) -> None:
    """A table's twin: data files are shared, the log is its own."""
    (root / "_delta_log").mkdir(parents=True, exist_ok=True)
    for path in source.glob("*.parquet"):
        (root / path.name).hardlink_to(path)
    for path in (source / "_delta_log").glob("*.json"):
        shutil.copy(path, root / "_delta_log")


def make_past(root: Path, live: Path, past: Path) -> None:
    """A table's files in the place of another's, which were removed years ago and are still there."""
    link_table(root, past)
    removed = [
        {
            "remove": {
                "path": a["add"]["path"],
                "deletionTimestamp": EPOCH_MS,
                "dataChange": True,
                "size": a["add"]["size"],
            }
        }
        for a in _read_lines(past)
        if "add" in a
    ]
    added = [a for a in _read_lines(live) if "add" in a]
    for action in added:
        name = action["add"]["path"]
        (root / f"live-{name}").hardlink_to(live / name)
        action["add"]["path"] = f"live-{name}"
    _write_lines(root / "_delta_log" / f"{1:020}.json", [*removed, *added])


def make_vectors_enabled(root: Path, source: Path) -> None:
    """A table's files in a table that takes deletion vectors."""
    for path in source.glob("*.parquet"):
        (root / path.name).hardlink_to(path)
    for action in (actions := _read_lines(source)):
        if "protocol" in action:
            action["protocol"] = _features(["deletionVectors"], ["deletionVectors"])
        if "metaData" in action:
            action["metaData"]["configuration"] = {"delta.enableDeletionVectors": "true"}
    _write_lines(root / "_delta_log" / f"{0:020}.json", actions)


def make_news(path: Path, count: int, known: int) -> None:
    """Rows to merge into a table whose ids run up to `known`: every other one has an id of the table."""
    table = rows(count, 0, seed=99)
    numbers = np.arange(count, dtype=np.int64)
    # Evenly over the table, in no order.
    there = (numbers // 2 * (2 * known // count) + 13) % known
    ids = np.where(numbers % 2 == 0, there, known + numbers)
    order = np.random.default_rng(99).permutation(count)
    pq.write_table(table.set_column(0, "id", pa.array(ids)).take(pa.array(order)), path, compression="snappy")


def make_masked(root: Path, source: Path, fraction: float) -> None:
    """A table's files with a deletion vector each, of rows drawn at random: all vectors lie in one file."""
    for path in source.glob("*.parquet"):
        (root / path.name).hardlink_to(path)
    blob, name, random = bytearray(b"\x01"), uuid.UUID(int=7), np.random.default_rng(7)
    for action in (actions := _read_lines(source)):
        if "protocol" in action:
            action["protocol"] = _features(["deletionVectors"], ["deletionVectors"])
        if "add" in action:
            count = json.loads(action["add"]["stats"])["numRecords"]
            rows = random.choice(count, int(count * fraction), replace=False)
            vector = (1_681_511_377).to_bytes(4, "little") + BitMap64(rows.tolist()).serialize()
            action["add"]["deletionVector"] = {
                "storageType": "u",
                "pathOrInlineDv": _z85(name.bytes),
                "offset": len(blob),
                "sizeInBytes": len(vector),
                "cardinality": len(rows),
            }
            blob += len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")
    (root / f"deletion_vector_{name}.bin").write_bytes(blob)
    _write_lines(root / "_delta_log" / f"{0:020}.json", actions)


def make_partitioned(root: Path, source: Path, *, in_folders: bool) -> None:
    """A table's files with a value each of a partition column, `part`; in a folder each, as writers do, or not."""
    places = {
        path.name: f"part={path.name[:10]}/{path.name}" if in_folders else path.name
        for path in source.glob("*.parquet")
    }
    for name, place in places.items():
        (root / place).parent.mkdir(exist_ok=True)
        (root / place).hardlink_to(source / name)
    for action in (actions := _read_lines(source)):
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            schema["fields"].append({"name": "part", "type": "string", "nullable": True, "metadata": {}})
            action["metaData"]["schemaString"] = json.dumps(schema)
            action["metaData"]["partitionColumns"] = ["part"]
        if "add" in action:
            name = action["add"]["path"]
            action["add"].update(path=places[name], partitionValues={"part": name[:10]})
    _write_lines(root / "_delta_log" / f"{0:020}.json", actions)


def make_changes(root: Path, versions: int, rows_per_file: int) -> None:
    """A table with a change feed: by turns a commit adds a file, and rewrites it with a part of its rows changed.

    What a rewrite changed stands in a file of changes; what an append did is derived from the file itself.
    """
    previous: pa.Table = rows(rows_per_file, 0, seed=0)
    first = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}]
    first.append({"metaData": _metadata(previous.schema, {}, {"delta.enableChangeDataFeed": "true"}, 0)})
    (root / "_delta_log").mkdir(parents=True, exist_ok=True)
    (root / "_change_data").mkdir(exist_ok=True)
    for version in range(versions):
        name, before = f"part-{version:05}.snappy.parquet", f"part-{version - 1:05}.snappy.parquet"
        actions: list[dict[str, Any]] = [{"commitInfo": {"timestamp": EPOCH_MS + version * 1000, "operation": "WRITE"}}]
        if version % 2 == 0:
            table = rows(rows_per_file, version * rows_per_file, seed=version)
            actions += first if version == 0 else []
        else:
            changed = pc.equal(pc.bit_wise_and(previous["customer"], 15), 0)
            more = pc.add(previous["quantity"], pc.cast(changed, pa.int32()))
            table = previous.set_column(previous.column_names.index("quantity"), "quantity", more)
            actions.append({"remove": {"path": before, "deletionTimestamp": EPOCH_MS, "dataChange": True}})
            actions.append({"cdc": _write_changes(root, version, previous.filter(changed), table.filter(changed))})
        pq.write_table(table, root / name, compression="snappy")
        actions.append(_add(name, (root / name).stat().st_size, _statistics(table)))
        _write_lines(root / "_delta_log" / f"{version:020}.json", actions)
        previous = table


def _write_changes(root: Path, version: int, old: pa.Table, new: pa.Table) -> dict[str, Any]:
    kinds = zip(("update_preimage", "update_postimage"), (old, new), strict=True)
    both = pa.concat_tables([t.append_column("_change_type", pa.array([kind] * t.num_rows)) for kind, t in kinds])
    name = f"_change_data/cdc-{version:05}.snappy.parquet"
    pq.write_table(both, root / name, compression="snappy")
    return {"path": name, "partitionValues": {}, "size": (root / name).stat().st_size, "dataChange": False}


def make_mapped(root: Path, source: Path, mode: str) -> None:
    """A table's rows in files whose columns have other names, `name` or `id` saying how they are found."""
    for path in source.glob("*.parquet"):
        table = pq.read_table(path)
        fields = [
            pa.field(f"col-{i}", f.type, metadata={"PARQUET:field_id": str(i)}) for i, f in enumerate(table.schema, 1)
        ]
        mapped = pa.table(table.columns, schema=pa.schema(fields))
        pq.write_table(mapped, root / path.name, compression="snappy", row_group_size=1_000_000)
    for action in (actions := _read_lines(source)):
        if "protocol" in action:
            action["protocol"] = _features(["columnMapping"], ["columnMapping"])
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for i, f in enumerate(schema["fields"], 1):
                f["metadata"] = {"delta.columnMapping.id": i, "delta.columnMapping.physicalName": f"col-{i}"}
            action["metaData"]["schemaString"] = json.dumps(schema)
            action["metaData"]["configuration"] = {
                "delta.columnMapping.mode": mode,
                "delta.columnMapping.maxColumnId": str(len(schema["fields"])),
            }
        if "add" in action:
            action["add"]["size"] = (root / action["add"]["path"]).stat().st_size
            del action["add"]["stats"]
    _write_lines(root / "_delta_log" / f"{0:020}.json", actions)


def _read_lines(root: Path) -> list[dict[str, Any]]:
    text = (root / "_delta_log" / f"{0:020}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def columns() -> list[str]:
    """The names of the columns that `rows` makes."""
    return rows(1, 0, 0).column_names


def _features(reader: Sequence[str], writer: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": list(writer)}
    return {**found, "minReaderVersion": 3, "readerFeatures": list(reader)} if reader else found


def _legacy(writer: int) -> dict[str, Any]:
    return {"minReaderVersion": 1, "minWriterVersion": writer}


def _z85(data: bytes) -> str:
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    words = [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]
    return "".join(letters[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


def make_log(root: Path, files: int) -> None:
    """A log of many `add` actions with statistics, for files that do not exist."""
    adds = (
        _add(
            f"part-{i:06}-{uuid.UUID(int=i)}.c000.snappy.parquet",
            10_000_000 + i,
            {
                "numRecords": 1000,
                "minValues": {"id": i * 1000, "name": f"name {i:09}"},
                "maxValues": {"id": i * 1000 + 999, "name": f"name {i:09}z"},
                "nullCount": {"id": 0, "name": 0},
            },
        )
        for i in range(files)
    )
    _write_commits(root, pa.schema([("id", pa.int64()), ("name", pa.string())]), list(adds), LOG_COMMITS)


def make_empty(
    root: Path,
    metadata: Mapping[str, dict[str, Any]],
    properties: Mapping[str, str],
    reader_features: Sequence[str] = (),
    writer_features: Sequence[str] = (),
) -> None:
    """A table without files, of the columns that `rows` makes and those that have metadata: for writers to fill."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "_delta_log").mkdir(parents=True)
    known = {f.name: f for f in rows(1, 0, 0).schema}
    schema = pa.schema([*known.values(), *(pa.field(name, pa.int64()) for name in metadata if name not in known)])
    protocol = _features(reader_features, writer_features) if writer_features else _legacy(6)
    _write_commits(root, schema, [], 1, metadata, properties, protocol)


def _statistics(table: pa.Table) -> dict[str, Any]:
    ranges = {name: pc.min_max(table.column(name)).as_py() for name in _WITH_RANGE}
    return {
        "numRecords": table.num_rows,
        "minValues": {name: _json(value["min"]) for name, value in ranges.items()},
        "maxValues": {name: _json(value["max"]) for name, value in ranges.items()},
        "nullCount": {name: table.column(name).null_count for name in table.column_names},
    }


def _json(value: object) -> object:
    return value if isinstance(value, (int, float, str)) else str(value)


def _add(path: str, size: int, statistics: dict[str, Any]) -> dict[str, Any]:
    return {
        "add": {
            "path": path,
            "partitionValues": {},
            "size": size,
            "modificationTime": EPOCH_MS,
            "dataChange": True,
            "stats": json.dumps(statistics, separators=(",", ":")),
        }
    }


def _write_commits(
    root: Path,
    schema: pa.Schema,
    adds: Sequence[dict[str, Any]],
    commits: int,
    metadata_of: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    properties: Mapping[str, str] = MappingProxyType({}),
    protocol: Mapping[str, Any] | None = None,
) -> None:
    first = [
        {"protocol": protocol or _legacy(2)},
        {"metaData": _metadata(schema, metadata_of, properties, len(adds))},
    ]
    for version in range(commits):
        part = adds[version * len(adds) // commits : (version + 1) * len(adds) // commits]
        info = {"commitInfo": {"timestamp": EPOCH_MS + version, "operation": "WRITE", "operationParameters": {}}}
        _write_lines(root / "_delta_log" / f"{version:020}.json", [info, *(first if version == 0 else []), *part])


def _metadata(
    schema: pa.Schema, metadata_of: Mapping[str, dict[str, Any]], properties: Mapping[str, str], number: int
) -> dict[str, Any]:
    fields = [
        {"name": f.name, "type": _DELTA_TYPES[f.type], "nullable": True, "metadata": metadata_of.get(f.name, {})}
        for f in schema
    ]
    return {
        "id": str(uuid.UUID(int=number)),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": dict(properties),
        "createdTime": EPOCH_MS,
    }


def _write_lines(path: Path, actions: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
