"""Object stores that others made, really spoken to: S3 by moto, which checks signatures; Azure by Microsoft's Azurite."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from object_servers import Served, missing, serve
from open_readers import READERS
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.api.delta.maintenance import check_table, clone_table, vacuum_table, write_checkpoint
from alluvium.errors import AlluviumError
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome, Store

pytestmark = pytest.mark.slow

#: More than a page of a listing of S3; Azure's have 5,000.
MANY = 1_100
WRITERS, APPENDS = 3, 6


@pytest.fixture(scope="module", params=["s3", "azure"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if reason := missing(request.param):
        pytest.skip(reason)
    with serve(request.param, tmp_path_factory.mktemp("server")) as bucket:
        yield bucket


@pytest.fixture
def url(served: Served, request: pytest.FixtureRequest) -> str:
    """A place of its own. (moto cannot check signatures of listings whose prefix has a blank.)"""
    return f"{served.url}/{request.node.originalname}/a%20é"


@pytest.fixture
def store(served: Served, url: str) -> Store:
    return open_store(url, served.options)


def test_one_of_many_puts_at_once_wins(store: Store) -> None:
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda n: store.put_if_absent("x", b"%d" % n), range(16)))
    assert Counter(outcomes) == {PutOutcome.DONE: 1, PutOutcome.EXISTS: 15}
    assert store.get("x") == b"%d" % outcomes.index(PutOutcome.DONE)
    assert store.get_range("x", 9, 1) == b""


def test_listings_of_many_pages(store: Store) -> None:
    names = [f"d/{n:05} é%20#?" for n in range(MANY)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: store.put(name, b""), names))
    store.put("d/below/x", b"1")
    assert [info.path for info in store.list_from("d")] == names
    assert [info.path for info in store.list_from("d", f"{MANY - 3:05}")] == names[-3:]
    assert {info.path for info in store.list_tree("d")} == {*names, "d/below/x"}
    store.delete_all([*names, "d/never was"])
    assert [info.path for info in store.list_tree("d")] == ["d/below/x"]


def test_copies_in_parts(store: Store, tmp_path: Path) -> None:
    local = open_store(str(tmp_path))
    data = bytes(range(256)) * (12 << 12)  # 12 MB
    local.put("big", data)
    assert store.copy_from(local, "big", "big") == len(data)
    assert store.head("big").size == len(data)
    assert store.get_range("big", len(data) - 256, 300) == bytes(range(256))
    assert store.copy_from(store, "big", "again") == len(data)
    assert store.get_range("again", 256, 256) == bytes(range(256))


def _append_many(url: str, options: Mapping[str, str], writer: int) -> None:
    for n in range(APPENDS):
        commit_rows(open_target(open_store(url, options)), [writer * 1000 + n])


def test_writers_of_several_processes_lose_nothing(served: Served, url: str) -> None:
    commit_rows(open_target(open_store(url, served.options)), [-1])
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(url, served.options, w)) for w in range(WRITERS)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)
    assert [p.exitcode for p in writers] == [0] * WRITERS
    view = alluvium.open(url, storage_options=served.options)
    expected = sorted([-1, *(w * 1000 + n for w in range(WRITERS) for n in range(APPENDS))])
    assert sorted(view.to_arrow(["id"])["id"].to_pylist()) == expected
    assert view.version == WRITERS * APPENDS


def test_the_life_of_a_table(served: Served, url: str, store: Store) -> None:
    for n in range(12):
        commit_rows(open_target(store), [n])
    commit_rows(open_target(store), [99], replace=Replace(parse_predicate("true", SCHEMA), "true"))
    assert write_checkpoint(url, served.options)
    view = alluvium.open(url, storage_options=served.options)
    assert view.to_arrow(["id"])["id"].to_pylist() == [99]
    old = alluvium.open(url, version=11, storage_options=served.options)
    assert sorted(old.to_arrow(["id"])["id"].to_pylist()) == list(range(12))
    assert not check_table(url, served.options)
    clone_table(url, f"{url}-copy", storage_options=served.options)
    # These stores tell times in whole seconds: of this one nobody knows yet what is older than now.
    time.sleep(1.1)
    vacuum_table(url, retention_hours=0, checks=False, storage_options=served.options)
    assert view.refresh().to_arrow(["id"])["id"].to_pylist() == [99]
    assert sum(info.path.endswith(".parquet") and "_delta_log" not in info.path for info in store.list_tree("")) == 1
    copy = alluvium.open(f"{url}-copy", storage_options=served.options)
    assert copy.to_arrow(["id"])["id"].to_pylist() == [99]


def test_who_may_not_is_told_so_without_secrets(served: Served, url: str) -> None:
    secret = list(served.wrong.values())[-1]
    commit_rows(open_target(open_store(url, served.options)), [1])
    tries = (
        lambda: alluvium.open(url, storage_options=served.wrong),
        lambda: open_store(url, served.wrong).put_if_absent("x", b""),
        lambda: list(open_store(url, served.wrong).list_tree("")),
    )
    for attempt in tries:
        with pytest.raises(AlluviumError) as caught:
            attempt()
        assert "credentials" in str(caught.value)
        told = caught.value
        while told is not None:
            assert secret not in f"{told!s} {told!r} {told.args}"
            told = told.__cause__ or told.__context__
    view = alluvium.open(url, storage_options=served.options)
    own = list(served.options.values())[-1]
    assert own not in f"{view!r} {view.history()!r} {view._snapshot.store!r}"


@pytest.mark.skipif(
    not list(READERS.glob(".installed-*")), reason="deltalake is not installed: scripts/install.sh readers"
)
def test_deltalake_writes_beside_us(served: Served, tmp_path: Path) -> None:
    url = f"{served.url}/beside"
    commit_rows(open_target(open_store(url, served.options)), [1])
    behind = open_target(open_store(url, served.options))
    options = {_OF_OBSTORE.get(name, name): value for name, value in served.options.items() if name != "max_retries"}
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"url": url, "options": options}))
    run = subprocess.run([str(READERS / "bin/python"), "-c", _BY_DELTALAKE, str(job)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    commit_rows(behind, [3])
    view = alluvium.open(url, storage_options=served.options)
    assert (sorted(view.to_arrow(["id"])["id"].to_pylist()), view.version) == ([1, 2, 3], 2)


_OF_OBSTORE = {
    "fs.s3a.endpoint": "endpoint", "fs.s3a.access.key": "access_key_id", "fs.s3a.secret.key": "secret_access_key",
    "fs.s3a.path.style.access": "allow_http",
}  # fmt: skip
_BY_DELTALAKE = """
import json, sys, pyarrow as pa
from deltalake import DeltaTable, write_deltalake
job = json.load(open(sys.argv[1]))
table = DeltaTable(job["url"], storage_options=job["options"])
assert table.to_pyarrow_table()["id"].to_pylist() == [1]
write_deltalake(table, pa.table({"id": [2], "p": ["a"]}), mode="append")
"""
