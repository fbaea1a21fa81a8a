"""Every kind of commit, with every single request of it failing once: before and after it took effect, softly and as a
crash.

After each: the table is at a version that somebody committed, readable, with nothing lost or doubled; what was reported
is what happened; and the next writer succeeds.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faulty_store import Crash, Fault, FaultyStore, When
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.delta.description.alter import apply_change
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.description.evolve import Change, set_properties
from alluvium.delta.log.names import LOG_DIRECTORY
from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot
from alluvium.delta.upkeep.convert.conversion import ConvertRequest
from alluvium.delta.upkeep.convert.convert import convert
from alluvium.delta.upkeep.restore import restore
from alluvium.delta.view.snapshot import RECENT, load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import AlluviumError, CommitUnknown, NotFound
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Committed, Describe, Operation, ReadScope, Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

LONG_AGO_MS = 1_600_000_000_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of commit.

    Attributes:
        make: Brings about what was there before.
        act: Commits; gives the version that it made.
        ids: The rows afterwards.
        property: Whether the table then has the property `seen`.
    """

    make: Callable[[str], None]
    act: Callable[[Store], int]
    ids: tuple[int, ...]
    property: bool = False


def nothing(url: str) -> None:
    pass


def partitioned(url: str) -> None:
    commit_rows(open_target(open_store(url), partitioned=True), [1], "a")
    commit_rows(open_target(open_store(url)), [2], "b")


def with_everything(url: str) -> None:
    """The next version is due for a checkpoint with sidecars and a clean-up of the log; row ids and times are kept."""
    store = open_store(url)
    properties = {
        "delta.checkpointInterval": "4",
        "delta.checkpointPolicy": "v2",
        "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.feature.v2Checkpoint": "supported",
    }
    config = table_config(NewTable(SCHEMA, properties=properties))
    DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    for n in range(1, 8):
        commit_rows(open_target(store), [n])
    age(url)


def age(url: str) -> None:
    """Everything of the log is old enough to go, as far as a checkpoint stands for it."""
    for directory in (Path(url) / LOG_DIRECTORY, Path(url) / LOG_DIRECTORY / "_sidecars"):
        for path in directory.iterdir():
            os.utime(path, (LONG_AGO_MS / 1000, LONG_AGO_MS / 1000))


def create(store: Store) -> int:
    config = table_config(NewTable(SCHEMA, properties={"seen": "yes"}))
    return DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing())).version


def create_with_rows(store: Store) -> int:
    return commit_rows(open_target(store), [100]).version


def append(store: Store) -> int:
    return commit_rows(open_target(store), [100], "a").version


def replace_partition(store: Store) -> int:
    return commit_rows(open_target(store), [100], "a", Replace(parse_predicate("p = 'a'", SCHEMA), "p = 'a'")).version


def replace_written_partitions(store: Store) -> int:
    return commit_rows(open_target(store), [100], "b", Replace(dynamic=True)).version


def change_property(store: Store) -> int:
    def change(config: object) -> Change:
        return set_properties(config, {"seen": "yes"})  # type: ignore[arg-type]

    return apply_change(load_snapshot(store), change, "test").version


def restore_first(store: Store) -> int:
    return restore(load_snapshot(store), load_snapshot(store, 0), {"version": 0, "timestamp": None}, "test").version


def parquet(url: str) -> None:
    """Files that are no table yet."""
    for name, ids in (("a", [1, 2]), ("b", [3])):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": ids, "p": ["a"] * len(ids)}), sink)
        open_store(url).put(f"{name}.parquet", sink.getvalue().to_pybytes())


def convert_files(store: Store) -> int:
    done = convert(store, ConvertRequest())
    assert isinstance(done, Committed)
    return done.version


EVERYTHING = tuple(range(1, 8))
KINDS = {
    "create": Kind(nothing, create, (), property=True),
    "create with rows": Kind(nothing, create_with_rows, (100,)),
    "append": Kind(partitioned, append, (1, 2, 100)),
    "replace where": Kind(partitioned, replace_partition, (2, 100)),
    "replace dynamically": Kind(partitioned, replace_written_partitions, (1, 100)),
    "change a property": Kind(partitioned, change_property, (1, 2), property=True),
    "convert": Kind(parquet, convert_files, (1, 2, 3)),
    "restore": Kind(partitioned, restore_first, (1,)),
    "append with checkpoint and clean-up": Kind(with_everything, append, (*EVERYTHING, 100)),
    "property with checkpoint and clean-up": Kind(with_everything, change_property, EVERYTHING, property=True),
}


def state(url: str) -> tuple[int, tuple[int, ...], bool]:
    """Version, rows and property; -1 where there is no table."""
    try:
        table = alluvium.open(url)
    except NotFound as error:
        assert error.code == "not-a-table"
        return -1, (), False
    ids = tuple(sorted(table.to_arrow(["id"]).column("id").to_pylist()))
    return table.version, ids, "seen" in table.properties


def requests_of(kind: Kind, made: Path, url: Path) -> list[tuple[str, str]]:
    """What one commit asks of the store."""
    copy(made, url)
    RECENT.clear()
    store = FaultyStore(open_store(str(url)))
    kind.act(store)
    return store.requests


def copy(made: Path, url: Path) -> None:
    """A table as it was made, with the times of its files: these decide what is cleaned up."""
    if made.exists():
        shutil.copytree(made, url)


@pytest.mark.slow
@pytest.mark.parametrize("crash", [False, True], ids=["soft", "crash"])
@pytest.mark.parametrize("when", list(When), ids=lambda when: when.value)
@pytest.mark.parametrize("name", KINDS)
def test_each_request_of_each_commit_fails_once(tmp_path: Path, name: str, when: When, crash: bool) -> None:
    kind, made = KINDS[name], tmp_path / "made"
    kind.make(str(made))
    requests = requests_of(kind, made, tmp_path / "counted")
    if "clean-up" in name:
        paths = [path for verb, path in requests if verb in ("put", "put_if_absent", "delete")]
        for part in (".json", ".crc", "_sidecars/", ".checkpoint.", "_last_checkpoint", "00000000000000000003.json"):
            assert any(part in path for path in paths), f"the commit was to touch {part}"
    total = len(requests)
    failed = 0
    for at in range(1, total + 1):
        url = str(tmp_path / f"t{at}")
        copy(made, Path(url))
        before = state(url)
        # As a writer that has seen nothing yet: what this process knows already would not be asked for.
        RECENT.clear()
        store = FaultyStore(open_store(url), Fault(at, when, crash=crash))
        version = outcome = None
        with warnings.catch_warnings():
            # What is left undone after the commit is a warning, and made up for by those who come next.
            warnings.simplefilter("ignore", UserWarning)
            try:
                version = kind.act(store)
            except (AlluviumError, Crash) as error:
                outcome = error
        failed += store.failed
        told = f"{name}: {store.requests[-1]} ({at}) failed {when.value}: {outcome!r}"
        ensure_settled(url, kind, before, version, outcome, told)
        ensure_next_writer(url, told)
    assert failed == total


def ensure_settled(
    url: str,
    kind: Kind,
    before: tuple[int, tuple[int, ...], bool],
    version: int | None,
    outcome: BaseException | None,
    told: str,
) -> None:
    after = (before[0] + 1, kind.ids, kind.property)
    found = state(url)
    assert found in (before, after), told
    if version is not None:
        assert found == after and version == after[0], f"{told}: reported as committed"
    elif not isinstance(outcome, (Crash, CommitUnknown)):
        assert found == before, f"{told}: reported as failed, yet committed"


def ensure_next_writer(url: str, told: str) -> None:
    """The next writer adds its row, a checkpoint where its turn comes, and the log is without faults."""
    version, ids, _ = state(url)
    committed = commit_rows(open_target(open_store(url)), [500], "a")
    assert committed.version == version + 1 and committed.attempts == 1, told
    assert state(url)[1] == (*ids, 500), told
    snapshot = load_snapshot(open_store(url))
    findings = (*check_log(open_store(url)), *check_snapshot(snapshot))
    assert [finding for finding in findings if finding.level == "error"] == [], told
