"""Random damage to every file of small Paimon tables, and a reader that does all that readers do with them.

Tables are made once by this project's own commits, in memory: path to bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import itertools
import json
import resource
import secrets
import sys
import tempfile
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import pyarrow as pa
from fuzz_mutations import _BYTES, _JSON
from paimon_rows import append, compacted, full, open_target
from pyroaring import BitMap64

import alluvium
from alluvium.errors import AlluviumError
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, ReadScope
from alluvium.storage.stores.memory import MemoryStore

#: Address space that a case may take beyond what the process has when it begins, and seconds after which it hangs.
_MEMORY_BYTES, _HANG_S = 3 << 30, 30
_NUMBERS = itertools.count()
_SCHEMA = pa.schema([("id", pa.int32()), ("s", pa.string()), ("day", pa.string())])


@dataclass
class PaimonFuzzTable:
    """A table; `ids` are those of the rows of its newest snapshot, `ever` of all rows that were ever written."""

    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    ids: frozenset[int] = frozenset()
    ever: frozenset[int] = frozenset()

    @property
    def newest(self) -> int:
        return max(int(path.rpartition("-")[2]) for path in self.files if path.startswith("snapshot/snapshot-"))

    def store(self) -> MemoryStore:
        made = MemoryStore(f"fuzz-paimon-{next(_NUMBERS)}", "t")
        for path, data in self.files.items():
            made.put(path, data)
        return made


def _finished(name: str, store: MemoryStore, ever: set[int]) -> PaimonFuzzTable:
    files = {info.path: store.get(info.path) for info in store.list_tree("")}
    found = frozenset(alluvium.open(store.url).to_arrow(columns=["id"])["id"].to_pylist())
    return PaimonFuzzTable(name, files, found, frozenset(ever))


def _uuid(random: Random) -> uuid.UUID:
    return uuid.UUID(bytes=random.randbytes(16), version=4)


@contextlib.contextmanager
def _same_names() -> Iterator[None]:
    """What is named at random is named the same in every process: a case is its number alone."""
    random = Random(0)
    with (
        mock.patch.object(uuid, "uuid4", functools.partial(_uuid, random)),
        mock.patch.object(secrets, "token_bytes", random.randbytes),
    ):
        yield


def _made(keys: tuple[str, ...], options: Mapping[str, str]) -> MemoryStore:
    store = MemoryStore(f"fuzz-paimon-{next(_NUMBERS)}", "t")
    PaimonTable.create(store.url, _SCHEMA, ["day"], keys, dict(options))
    return store


def _rows(ids: range, day: str, text: str = "r") -> list[dict[str, object]]:
    return [{"id": i, "s": f"{text}{i}", "day": day} for i in ids]


@functools.cache
@_same_names()
def append_table(file_format: str) -> PaimonFuzzTable:
    """Three commits, and rows that go one by one."""
    store = _made((), {"deletion-vectors.enabled": "true", "file.format": file_format, "manifest.compression": "none"})
    for number, day in enumerate("aba"):
        append(open_target(store), _rows(range(10 * number, 10 * number + 4), day))
    path = alluvium.open(store.url).files()["path"][0].as_py()
    touched = pa.table([pa.array([path]), pa.array([BitMap64([1, 3]).serialize()], pa.binary())], schema=TOUCHED_FILES)
    open_target(store).commit(EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.table()))
    return _finished(f"append-{file_format}", store, {10 * n + i for n in range(3) for i in range(4)})


@functools.cache
@_same_names()
def keyed_table(file_format: str = "parquet", **options: str) -> PaimonFuzzTable:
    """Rows by key: some come again, and files of two levels."""
    store = _made(("id", "day"), {"bucket": "1", "file.format": file_format, "manifest.compression": "none", **options})
    append(open_target(store), _rows(range(4), "a"))
    append(open_target(store), _rows(range(2, 6), "a", "again"))
    append(open_target(store), _rows(range(10, 13), "b"))
    compaction = full(load_snapshot(store))
    kept = alluvium.open(store.url).to_arrow(where="day = 'a'").to_pylist()
    compacted(open_target(store), compaction, kept)
    append(open_target(store), _rows(range(5, 7), "a", "third"))
    return _finished(f"keyed-{file_format}", store, {*range(7), 10, 11, 12})


@functools.cache
@_same_names()
def dynamic_table() -> PaimonFuzzTable:
    """Dynamic buckets: an index of hashes."""
    store = _made(("id", "day"), {"bucket": "-1", "dynamic-bucket.target-row-num": "2", "manifest.compression": "none"})
    append(open_target(store), _rows(range(5), "a"))
    append(open_target(store), _rows(range(3, 7), "a", "again"))
    return _finished("dynamic", store, set(range(7)))


#: What makes each table, in the order in which a case chooses.
TABLES: tuple[Callable[[], PaimonFuzzTable], ...] = (
    lambda: append_table("parquet"), lambda: append_table("orc"), lambda: append_table("avro"), keyed_table,
    lambda: keyed_table("orc"), lambda: keyed_table("avro"), dynamic_table,
)  # fmt: skip


# -- damage -----------------------------------------------------------------------------------------------------------

#: Names that mean something to readers, for content that belongs elsewhere.
_NAMES = (
    "snapshot/snapshot-9", "snapshot/snapshot-1", "snapshot/LATEST", "snapshot/EARLIEST", "snapshot/snapshot-99999999999999999999",
    "schema/schema-1", "schema/schema-0", "tag/tag-x", "consumer/consumer-x", "changelog/changelog-1", "branch/branch-b/schema/schema-0",
    "branch/branch-b/snapshot/snapshot-1", "statistics/stat-x", "index/x", "manifest/x",
)  # fmt: skip


def damaged(files: Mapping[str, bytes], random: Random) -> tuple[dict[str, bytes], list[str], list[str]]:
    """A copy with one to three mutations, what they were, and the paths they touched."""
    made, told, touched = dict(files), [], []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        path = random.choice(sorted(made))
        is_json = made[path].lstrip()[:1] == b"{"
        mutation = random.choice(_JSON if is_json and random.random() < 0.7 else _BYTES)
        touched.append(path)
        name = mutation.__name__.strip("_")
        if name == "double":
            other = random.choice(_NAMES)
            made[other] = made[path]
            touched.append(other)
        elif name == "swap":
            other = random.choice(sorted(made))
            made[path], made[other] = made[other], made[path]
            touched.append(other)
        else:
            mutation(made, path, random)
        told.append(f"{name} {' '.join(touched[-2:])}")
    return made, told, touched


# -- a reader ---------------------------------------------------------------------------------------------------------

_WHERE = ("id >= 5", "id between 3 and 11 and id <> 5", "id is null", "day = 'b'", "s like 'again%' or day > 'a'")
_SYSTEM = (
    "snapshots", "schemas", "options", "tags", "branches", "files", "manifests", "partitions", "buckets", "consumers",
    "statistics", "aggregation_fields", "table_indexes", "file_key_ranges", "audit_log", "binlog", "ro", "row_tracking",
)  # fmt: skip


#: How many of what readers do a case does: more cases tell more than more of each.
_ACTS = 5


class WrongRows(Exception):
    """Rows that no committed state has."""


def read_everything(table: PaimonFuzzTable, root: str, random: Random, touched: Sequence[str]) -> str:
    """All that a reader does with a table; the code of the first error, or `rows`."""
    try:
        return _read(table, root, random, touched)
    except AlluviumError as error:
        str(error)
        return error.code


def _read(table: PaimonFuzzTable, root: str, random: Random, touched: Sequence[str]) -> str:
    t = alluvium.open(root)
    str(t.schema), t.schema.to_arrow(), t.properties, t.partition_columns, repr(t)
    where, system = random.choice(_WHERE), random.sample(_SYSTEM, 2)
    acts = (
        lambda: t.timestamp, t.files, lambda: t.files(where), t.history, lambda: t.to_arrow(where=where), lambda: t.changes(1),
        lambda: t.changes(1, mode="diff"), lambda: t.changes(1, mode="delta"), lambda: alluvium.explain(root, where), t.refresh,
        lambda: alluvium.open(root, version=1).to_arrow(), lambda: alluvium.open(root, timestamp="2030-01-01").files(),
        *(functools.partial(t.system, name) for name in system), lambda: alluvium.open(root, tag="x").to_arrow(),
        lambda: alluvium.open(root, branch="b").to_arrow(),
    )  # fmt: skip
    for act in random.sample(acts, _ACTS):
        try:
            act()
        except AlluviumError as error:
            str(error)
    rows = t.to_arrow()
    rows.validate(full=True)
    if "id" not in rows.schema.names or str(rows.schema.field("id").type) not in ("int32", "int64"):
        return "rows"
    ids = [i for i in rows["id"].to_pylist() if i is not None]
    # Hints of the first and the last snapshot are only hints.
    if touched and all(path in ("snapshot/LATEST", "snapshot/EARLIEST") for path in touched) and set(ids) != table.ids:
        raise WrongRows(f"{sorted(ids)} instead of {sorted(table.ids)}")
    # What is stored in a data file is not found out to be another value.
    if not any("bucket-" in path for path in touched) and not table.ever.issuperset(ids):
        raise WrongRows(f"ids that nobody wrote: {sorted(set(ids) - table.ever)[:10]}")
    return "rows"


def run_case(case: int, tables: Sequence[PaimonFuzzTable]) -> tuple[str, list[str]]:
    """One case: the same for the same number."""
    random = Random(case)
    table = tables[case % len(tables)]
    files, told, touched = damaged(table.files, random)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        for path, data in files.items():
            target = Path(root, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        try:
            return read_everything(table, root, random, touched), told
        except Exception as error:  # noqa: BLE001 - a foreign exception is what is looked for
            return f"FOREIGN {type(error).__name__}", [*told, traceback.format_exc()]


def main() -> int:
    """Plays cases; a line of JSON before each and one after it, as of `fuzz_child`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--count", type=int, default=1 << 60)
    parser.add_argument("--seconds", type=float, default=1e9)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = [make() for make in TABLES]
    own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (own + _MEMORY_BYTES, own + _MEMORY_BYTES))
    end = time.monotonic() + asked.seconds
    for case in range(asked.first, asked.first + asked.count):
        if time.monotonic() > end:
            break
        print(json.dumps({"case": case}), flush=True)
        faulthandler.dump_traceback_later(_HANG_S, exit=True)
        outcome, told = run_case(case, tables)
        faulthandler.cancel_dump_traceback_later()
        name = tables[case % len(tables)].name
        print(json.dumps({"case": case, "table": name, "outcome": outcome, "told": told}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
