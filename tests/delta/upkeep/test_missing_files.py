"""Which files of a version are gone: inside and outside of the table, data and vectors, few and many."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from alluvium.codecs.z85 import format_z85
from alluvium.delta.upkeep import missing_files
from alluvium.delta.upkeep.missing_files import ensure_still_there, missing_of, refuse_missing
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import NotFound
from alluvium.storage.open import open_store

IDS = [uuid.UUID(int=n) for n in range(3)]
SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]})
INSIDE = ["a", "p=1/b c", "p=1/d", "z"]


class Place:
    """A table by hand: files inside, files in two folders elsewhere, and vectors of every kind."""

    def __init__(self, root: Path) -> None:
        self.root, self.table = root, root / "t"
        self.outside = [str(root / "far" / name) for name in ("e", "f", "g h")] + [str(root / "further/i")]
        self.vectors = [str(self.table / f"deletion_vector_{IDS[0]}.bin"), str(self.table / f"pre/deletion_vector_{IDS[1]}.bin"),
                        str(root / "far/vector.bin")]  # fmt: skip
        for path in (*(str(self.table / name) for name in INSIDE), *self.outside, *self.vectors):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(b"x")
        described = [self.vector("u", format_z85(IDS[0].bytes)), self.vector("u", f"pre{format_z85(IDS[1].bytes)}", offset=1),
                     self.vector("p", f"file:{self.vectors[2]}", offset=1), self.vector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"),
                     # Of no row: its file need not be there.
                     self.vector("u", format_z85(IDS[2].bytes), cardinality=0)]  # fmt: skip
        paths = [
            *(name.replace(" ", "%20") for name in INSIDE),
            *(f"file:{path.replace(' ', '%20')}" for path in self.outside),
        ]
        features = ["deletionVectors"]
        lines: list[dict[str, Any]] = [
            {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}},
            {"metaData": {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": SCHEMA, "partitionColumns": [], "configuration": {}}},
        ]  # fmt: skip
        for n, path in enumerate(paths):
            add: dict[str, Any] = {
                "path": path,
                "partitionValues": {},
                "size": 1,
                "modificationTime": 1,
                "dataChange": True,
                "stats": '{"numRecords":9}',
            }
            lines.append({"add": {**add, **({"deletionVector": described[n]} if n < len(described) else {})}})
        (self.table / "_delta_log").mkdir()
        (self.table / f"_delta_log/{0:020}.json").write_text("\n".join(map(json.dumps, lines)))

    @staticmethod
    def vector(kind: str, text: str, offset: int | None = None, cardinality: int = 2) -> dict[str, Any]:
        described = {"storageType": kind, "pathOrInlineDv": text, "sizeInBytes": 40, "cardinality": cardinality}
        return described if offset is None else {**described, "offset": offset}

    def snapshot(self) -> Snapshot:
        return load_snapshot(open_store(str(self.table)))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    "few", [0, 1, 3, 500], ids=["listed", "few are asked for", "some are listed", "all are asked for"]
)
def test_what_is_gone_is_named(place: Place, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_files, "_FEW", few)
    snapshot = place.snapshot()
    assert missing_of(snapshot, snapshot.files) == ()
    names = {
        **{str(place.table / name): name for name in INSIDE}, **{path: f"file:{path}" for path in place.outside},
        place.vectors[0]: f"deletion_vector_{IDS[0]}.bin", place.vectors[1]: f"pre/deletion_vector_{IDS[1]}.bin",
        place.vectors[2]: f"file:{place.vectors[2]}",
    }  # fmt: skip
    for path, name in names.items():
        data = Path(path).read_bytes()
        Path(path).unlink()
        assert missing_of(snapshot, snapshot.files) == (name,)
        Path(path).write_bytes(data)
    for path in names:
        Path(path).unlink()
    found = missing_of(snapshot, snapshot.files)
    assert sorted(found) == sorted(names.values()) and len(found) == 11
    # Data files come first.
    assert {name for name in found if "vector" in name} == set(found[8:])


@pytest.mark.parametrize("few", [0, 500])
def test_links_are_followed(place: Place, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing does not, but a file that it lacks is asked for."""
    monkeypatch.setattr(missing_files, "_FEW", few)
    (place.table / "p=1").rename(place.root / "moved")
    (place.table / "p=1").symlink_to(place.root / "moved")
    snapshot = place.snapshot()
    assert missing_of(snapshot, snapshot.files) == ()


def test_some_files_alone(place: Place) -> None:
    snapshot = place.snapshot()
    (place.table / "a").unlink()
    assert missing_of(snapshot, snapshot.files.slice(1)) == ()
    assert missing_of(snapshot, snapshot.files.slice(0, 0)) == ()
    assert missing_of(snapshot, snapshot.files.slice(0, 1)) == ("a",)


def test_errors_name_a_few(place: Place) -> None:
    snapshot = place.snapshot()
    refuse_missing(snapshot, ())
    with pytest.raises(NotFound) as caught:
        refuse_missing(snapshot, tuple("abcdefg"))
    error = caught.value
    assert (error.code, error.path, error.version, error.url) == ("missing-file", "a", 0, snapshot.store.url)
    assert error.message.startswith("7 data files") and error.message.endswith("a, b, c, d, e")


def test_a_second_look(place: Place) -> None:
    snapshot = place.snapshot()
    ensure_still_there(snapshot, snapshot.files, "version 7", "a hint")
    Path(place.outside[0]).unlink()
    (place.table / "z").unlink()
    with pytest.raises(NotFound) as caught:
        ensure_still_there(snapshot, snapshot.files, "version 7", "a hint")
    error = caught.value
    assert (error.code, error.path, error.version, error.hint) == ("missing-file", "z", 0, "a hint")
    assert error.message.startswith("version 7 stands, and 2 of its files")


def test_what_cannot_be_looked_for_says_nothing(place: Place) -> None:
    """The commit stands, and nothing speaks against it."""
    log = place.table / f"_delta_log/{0:020}.json"
    log.write_text(log.read_text().replace(f"file:{place.root}/further", "nowhere://x"))
    snapshot = place.snapshot()
    ensure_still_there(snapshot, snapshot.files, "version 7", "a hint")
