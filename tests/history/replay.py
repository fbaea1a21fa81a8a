"""What the log says, version by version: its text, and the rows of its files by pyarrow. No reader of any engine's."""

from __future__ import annotations

import json
import struct
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from history.acts import Key, Value

#: "The alphabet of Z85", by which short binaries stand in the log.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
Row = tuple[Key, Value]


class Broken(Exception):
    """The log contradicts itself, or its files."""


@dataclass
class Version:
    """A commit, and the state that it leads to.

    Attributes:
        number: Its version.
        info: Its `commitInfo`.
        came: Rows that are there since, how often each.
        went: Rows that are not there any more, how often each.
        data_change: Whether it says that rows are other than before.
    """

    number: int
    info: dict[str, Any]
    came: Counter[Row] = field(default_factory=Counter)
    went: Counter[Row] = field(default_factory=Counter)
    data_change: bool = False


@dataclass
class Log:
    """A table's log, which is read once from its first version on.

    Attributes:
        live: Its files after the version that was read last: path and vector; how many rows each.
    """

    root: Path
    live: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    _rows: dict[str, list[Row]] = field(default_factory=dict)
    _last_stamp: int = -1

    def versions(self) -> Iterator[Version]:
        """Each version in turn.

        Raises:
            Broken: A file is removed that is not there, added twice, missing, or not as the log says.
        """
        folder = self.root / "_delta_log"
        names = sorted(p.name for p in folder.glob("*.json") if p.stem.isdigit())
        if names != [f"{n:020}.json" for n in range(len(names))]:
            raise Broken("versions are missing")
        for number, name in enumerate(names):
            actions = [json.loads(line) for line in (folder / name).read_text().splitlines() if line.strip()]
            version = self._advance(number, actions)
            self._compare_checkpoint(number)
            self._compare_checksum(number)
            yield version

    def _advance(self, number: int, actions: list[dict[str, Any]]) -> Version:
        version = Version(number, next((a["commitInfo"] for a in actions if "commitInfo" in a), {}))
        self._look_at_stamp(version)
        for action in actions:
            if "metaData" in action:
                self.properties = action["metaData"]["configuration"]
        paths: Counter[str] = Counter()
        for kind in ("remove", "add"):
            for action in (a[kind] for a in actions if kind in a):
                version.data_change = version.data_change or action["dataChange"]
                key = (unquote(action["path"]), _vector_id(action))
                if (key in self.live) != (kind == "remove"):
                    raise Broken(
                        f"version {number}: {kind} of a file that is {'not ' * (kind == 'remove')}there: {key}"
                    )
                rows = self._live_rows(number, action if kind == "add" else self.live[key])
                (version.came if kind == "add" else version.went).update(rows)
                if kind == "add":
                    self.live[key] = action
                    paths[key[0]] += 1
                else:
                    del self.live[key]
        if twice := [path for path, count in paths.items() if count > 1]:
            raise Broken(f"version {number}: added twice: {twice}")
        both = version.came & version.went
        version.came, version.went = version.came - both, version.went - both
        return version

    def _look_at_stamp(self, version: Version) -> None:
        """In-commit timestamps get later with each version, whatever clocks say."""
        stamp = version.info.get("inCommitTimestamp")
        if self.properties.get("delta.enableInCommitTimestamps") == "true":
            if stamp is None or stamp <= self._last_stamp:
                raise Broken(f"version {version.number}: in-commit timestamp {stamp} after {self._last_stamp}")
            self._last_stamp = stamp

    def _live_rows(self, number: int, add: dict[str, Any]) -> list[Row]:
        rows = self._rows_of(number, add)
        deleted = self._deleted(add)
        if deleted and max(deleted) >= len(rows):
            raise Broken(f"version {number}: a vector of {add['path']} deletes a row beyond its end")
        return [row for place, row in enumerate(rows) if place not in deleted] if deleted else rows

    def _rows_of(self, number: int, add: dict[str, Any]) -> list[Row]:
        path = unquote(add["path"])
        if path not in self._rows:
            file = self.root / path
            if not file.exists() or file.stat().st_size != add["size"]:
                raise Broken(f"version {number}: {path} is missing, or not of the size that the log says")
            found = pq.ParquetFile(file).read(columns=["id", "v", "last"])
            p = add["partitionValues"]["p"]
            columns = (found[name].to_pylist() for name in ("id", "v", "last"))
            self._rows[path] = [((p, row), (v, last)) for row, v, last in zip(*columns, strict=True)]
        rows = self._rows[path]
        stats = json.loads(add["stats"]) if add.get("stats") else {}
        if stats.get("numRecords", len(rows)) != len(rows):
            raise Broken(f"version {number}: numRecords of {path} is {stats['numRecords']}, it has {len(rows)} rows")
        return rows

    def _deleted(self, add: dict[str, Any]) -> set[int]:
        vector = add.get("deletionVector")
        if not vector:
            return set()
        if vector["storageType"] == "i":
            bitmap = _unz85(vector["pathOrInlineDv"])[: vector["sizeInBytes"]]
        else:
            text = vector["pathOrInlineDv"]
            name = f"deletion_vector_{uuid.UUID(bytes=_unz85(text[-20:]))}.bin"
            file = (self.root / text[:-20] / name).read_bytes()
            start = vector.get("offset", 1)
            (size,) = struct.unpack_from(">i", file, start)
            bitmap = file[start + 4 : start + 4 + size]
        found = set(_bitmap(bitmap))
        if len(found) != vector["cardinality"]:
            raise Broken(f"a vector of {add['path']} has {len(found)} rows, not {vector['cardinality']}")
        return found

    def _compare_checkpoint(self, number: int) -> None:
        """Whoever wrote a checkpoint beside the others meant this version."""
        file = self.root / "_delta_log" / f"{number:020}.checkpoint.parquet"
        if not file.exists():
            return
        adds = (add for add in pq.ParquetFile(file).read(columns=["add"])["add"].to_pylist() if add and add["path"])
        found = sorted((unquote(add["path"]), _vector_id(add)) for add in adds)
        if found != sorted(self.live):
            raise Broken(f"version {number}: the checkpoint has {len(found)} files, the version {len(self.live)}")

    def _compare_checksum(self, number: int) -> None:
        file = self.root / "_delta_log" / f"{number:020}.crc"
        if not file.exists():
            return
        told = json.loads(file.read_text())
        size = sum(add["size"] for add in self.live.values())
        if (told["numFiles"], told["tableSizeBytes"]) != (len(self.live), size):
            raise Broken(
                f"version {number}: the checksum tells of {told['numFiles']} files, there are {len(self.live)}"
            )


def _vector_id(action: dict[str, Any]) -> str:
    vector = action.get("deletionVector")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}" if vector else ""


def _unz85(text: str) -> bytes:
    words = []
    for start in range(0, len(text), 5):
        number = 0
        for letter in text[start : start + 5]:
            number = number * 85 + _Z85.index(letter)
        words.append(struct.pack(">I", number))
    return b"".join(words)


def _bitmap(data: bytes) -> Iterator[int]:
    """A set of positions, as the specification of deletion vectors has it: 64 bits, of the portable kind."""
    (magic, count) = struct.unpack_from("<iq", data)
    if magic != 1681511377:
        raise Broken(f"a vector begins with {magic}")
    place = 12
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, place)
        place += 4
        place = yield from _small_bitmap(data, place, high << 32)


def _small_bitmap(data: bytes, place: int, base: int) -> Any:
    """A 32-bit Roaring bitmap; where it ends."""
    (cookie,) = struct.unpack_from("<I", data, place)
    start = place
    place += 4
    if cookie & 0xFFFF == 12347:
        size = (cookie >> 16) + 1
        is_run = data[place : place + (size + 7) // 8]
        place += len(is_run)
    else:
        (size,) = struct.unpack_from("<I", data, place)
        place, is_run = place + 4, b""
    keys = [struct.unpack_from("<HH", data, place + 4 * n) for n in range(size)]
    place += 4 * size
    if not is_run or size >= 4:
        place += 4 * size
    for n, (key, last) in enumerate(keys):
        high = base | key << 16
        if is_run and is_run[n // 8] >> n % 8 & 1:
            (runs,) = struct.unpack_from("<H", data, place)
            for run in range(runs):
                first, more = struct.unpack_from("<HH", data, place + 2 + 4 * run)
                yield from range(high | first, (high | first) + more + 1)
            place += 2 + 4 * runs
        elif last + 1 <= 4096:
            yield from (high | low for low in struct.unpack_from(f"<{last + 1}H", data, place))
            place += 2 * (last + 1)
        else:
            words = data[place : place + 8192]
            yield from (high | low for low in range(1 << 16) if words[low // 8] >> low % 8 & 1)
            place += 8192
    assert start < place
    return place
