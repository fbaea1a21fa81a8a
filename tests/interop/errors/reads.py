"""Tables that are not there, versions that are not, options that contradict each other, logs that are damaged."""

from __future__ import annotations

import json

from .place import Place, call, calls


@calls("for_path", "none", "parquet")
def for_path(p: Place, name: str) -> object:
    return p.table(name)


@call
def for_path_with_foreign_settings(p: Place) -> object:
    return p.delta.DeltaTable.forPath(p.spark, p.path("plain"), {"spark.x": "1"})


@calls("for_name", "no_such_table", "no_such_database.t")
def for_name(p: Place, name: str) -> object:
    return p.delta.DeltaTable.forName(p.spark, name)


@calls("load", "none", "parquet", "plain@v99")
def load(p: Place, name: str) -> object:
    return p.read(name)


@call
def load_version_of_nothing(p: Place) -> object:
    return p.read("none", versionAsOf=1)


@calls("version", 99, -1, "x")
def version(p: Place, said: object) -> object:
    return p.read(versionAsOf=said)


@calls("timestamp", "2001-01-01", "2099-01-01", "yesteryear")
def timestamp(p: Place, said: str) -> object:
    return p.read(timestampAsOf=said)


@call
def version_and_timestamp(p: Place) -> object:
    return p.read(versionAsOf=0, timestampAsOf="2099-01-01")


@call
def version_in_path_and_option(p: Place) -> object:
    return p.read("plain@v0", versionAsOf=0)


@call
def schema_given(p: Place) -> object:
    return p.spark.read.format("delta").schema("a int").load(p.path("plain"))


@calls(
    "feed",
    off={"startingVersion": 0, "table": "plain"},
    no_start={},
    start_beyond={"startingVersion": 99},
    backwards={"startingVersion": 1, "endingVersion": 0},
    start_twice={"startingVersion": 0, "startingTimestamp": "2001-01-01"},
    late={"startingTimestamp": "2099-01-01"},
    as_of={"startingVersion": 0, "versionAsOf": 0},
)
def feed(p: Place, options: dict[str, object]) -> object:
    given = {name: value for name, value in options.items() if name != "table"}
    return p.read(str(options.get("table", "fed")), readChangeFeed="true", **given).collect()


@call
def data_file_gone(p: Place) -> object:
    name = p.copy("plain")
    for path in (p.root / name).rglob("*.parquet"):
        path.unlink()
    return p.read(name).collect()


@call
def commit_gone(p: Place) -> object:
    name = p.copy("strict")
    p.log(name, 1).unlink()
    return p.read(name).collect()


@call
def first_commit_gone(p: Place) -> object:
    name = p.copy("plain")
    p.log(name, 0).unlink()
    return p.read(name).collect()


@call
def line_damaged(p: Place) -> object:
    name = p.copy("plain")
    p.log(name, 1).write_text('{"add": {"pa')
    return p.read(name).collect()


def _with_protocol(p: Place, protocol: dict[str, object]) -> str:
    name = p.copy("plain")
    p.log(name, 2).write_text(json.dumps({"protocol": protocol}) + "\n")
    # Damaged checksums are no news; this one would say another protocol.
    for path in (p.root / name / "_delta_log").glob("*.crc"):
        path.unlink()
    return name


@calls("reader", features={"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"], "writerFeatures": ["new"]},
       version={"minReaderVersion": 9, "minWriterVersion": 9})  # fmt: skip
def unknown_protocol(p: Place, protocol: dict[str, object]) -> object:
    return p.read(_with_protocol(p, protocol)).collect()


@calls("writer", features={"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["new"]},
       version={"minReaderVersion": 1, "minWriterVersion": 9})  # fmt: skip
def unknown_writer_protocol(p: Place, protocol: dict[str, object]) -> object:
    return p.write("select 1L id, 1 p, 'x' v", _with_protocol(p, protocol))


@calls("restore_version", 99, -1)
def restore_version(p: Place, said: int) -> object:
    return p.table().restoreToVersion(said)


@calls("restore_timestamp", "2001-01-01", "2099-01-01", "yesteryear")
def restore_timestamp(p: Place, said: str) -> object:
    return p.table().restoreToTimestamp(said)


@call
def restore_without_files(p: Place) -> object:
    name = p.copy("plain")
    p.table(name).delete()
    for path in (p.root / name).rglob("*.parquet"):
        path.unlink()
    return p.table(name).restoreToVersion(1)
