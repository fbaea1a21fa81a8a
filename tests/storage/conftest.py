"""The stores under test, each empty."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore as ObstoreMemory
from s3_server import S3Bucket, serve_s3

from alluvium.storage.open import open_store
from alluvium.storage.store import Store
from alluvium.storage.stores.hadoop import HadoopAccess, HadoopStore
from alluvium.storage.stores.objects import ObjectStore


@pytest.fixture
def s3_bucket() -> S3Bucket:
    return S3Bucket()


@pytest.fixture
def s3_options(s3_bucket: S3Bucket) -> Iterator[dict[str, str]]:
    with serve_s3(s3_bucket) as endpoint:
        yield {
            "fs.s3a.endpoint": endpoint,
            "fs.s3a.access.key": "key",
            "fs.s3a.secret.key": "secret",
            "fs.s3a.path.style.access": "true",
            "region": "us-east-1",
            "max_retries": "0",
            "timeout": "5s",
        }


@pytest.fixture
def hadoop(request: pytest.FixtureRequest) -> HadoopAccess:
    spark = request.getfixturevalue("spark")
    return HadoopAccess(spark._jvm, spark._jsc.hadoopConfiguration())


@pytest.fixture(params=["local", "memory", "obstore-memory", "s3", pytest.param("hadoop", marks=pytest.mark.spark)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store, empty, rooted at a path with characters that matter."""
    if request.param == "local":
        return open_store(tmp_path / "a b%20é#?" / "t")
    if request.param == "memory":
        return open_store(f"memory://{uuid.uuid4().hex}/a b%20é#?/t")
    if request.param == "obstore-memory":
        return ObjectStore(ObstoreMemory(), "a b%20é#?/t", "memory://x/a b%20é#?/t")
    if request.param == "s3":
        return open_store("s3://bucket/a b%20é#?/t", request.getfixturevalue("s3_options"))
    return HadoopStore(request.getfixturevalue("hadoop"), f"file:{tmp_path}/a b%20é#?/t", allow_unsafe_put=True)
