"""Commits on an object store: files are copied to where they belong, snapshots are conditional puts."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from paimon_rows import append, open_target, stage
from s3_server import S3Bucket, serve_s3

import alluvium
from alluvium.errors import AlluviumError, CommitUnknown
from alluvium.paimon import PaimonTable
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store

URL = "s3://bucket/tables/a b/t"
SCHEMA = pa.schema([("k", pa.int32()), ("p", pa.string())])


@pytest.fixture
def bucket() -> S3Bucket:
    return S3Bucket()


@pytest.fixture
def options(bucket: S3Bucket) -> Iterator[dict[str, str]]:
    with serve_s3(bucket) as endpoint:
        yield {
            "fs.s3a.endpoint": endpoint, "fs.s3a.access.key": "key", "fs.s3a.secret.key": "secret",
            "fs.s3a.path.style.access": "true", "region": "us-east-1", "max_retries": "0", "timeout": "5s",
        }  # fmt: skip


def ks(options: dict[str, str]) -> list[int]:
    return sorted(alluvium.open(URL, storage_options=options).to_arrow()["k"].to_pylist())


def test_appends_and_overwrites(bucket: S3Bucket, options: dict[str, str]) -> None:
    PaimonTable.create(URL, SCHEMA, ["p"], storage_options=options)
    store = open_store(URL, options)
    one, other = open_target(store), open_target(store)
    append(one, [{"k": 1, "p": "a/b"}, {"k": 2, "p": None}])
    assert append(other, [{"k": 3, "p": "é"}]).version == 2
    append(open_target(store), [{"k": 4, "p": None}], Replace(dynamic=True))
    assert ks(options) == [1, 3, 4]
    places = sorted({key.rpartition("/")[0] for key in bucket.objects if "bucket-" in key.removeprefix("bucket/")})
    assert [place.rpartition("a b/t/")[2] for place in places] == [
        "p=__DEFAULT_PARTITION__/bucket-0", "p=a%2Fb/bucket-0", "p=é/bucket-0",
    ]  # fmt: skip
    assert not [key for key in bucket.objects if "_staging" in key]


def test_a_lost_answer_is_settled_by_reading_back(bucket: S3Bucket, options: dict[str, str]) -> None:
    PaimonTable.create(URL, SCHEMA, storage_options=options)
    store = open_store(URL, options)
    target = open_target(store)
    changes = stage(target, [{"k": 1, "p": "a"}])
    publish = type(store).put_if_absent

    def lose(self: object, path: str, data: bytes) -> object:
        bucket.fault = "lose"
        try:
            return publish(store, path, data)
        finally:
            bucket.fault = None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(store), "put_if_absent", lose)
        assert target.commit(changes).version == 1
    assert ks(options) == [1]


def test_a_store_that_refuses_leaves_the_table_readable(bucket: S3Bucket, options: dict[str, str]) -> None:
    PaimonTable.create(URL, SCHEMA, storage_options=options)
    store = open_store(URL, options)
    append(open_target(store), [{"k": 1, "p": "a"}])
    target = open_target(store)
    changes = stage(target, [{"k": 2, "p": "a"}])
    bucket.fault = 503
    with pytest.raises(AlluviumError) as caught:
        target.commit(changes)
    assert not isinstance(caught.value, CommitUnknown)
    bucket.fault = None
    assert ks(options) == [1]
    append(open_target(store), [{"k": 3, "p": "a"}])
    assert ks(options) == [1, 3]
