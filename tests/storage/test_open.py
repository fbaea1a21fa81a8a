from __future__ import annotations

import os
from pathlib import Path

import pytest

from alluvium.errors import InvalidRequest
from alluvium.storage.open import open_store
from alluvium.storage.stores.local import LocalStore


def test_local_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = os.getcwd()
    assert open_store("t").url == f"file:{here}/t"
    assert open_store("./a:b/../c d").url == f"file:{here}/c d"
    assert open_store(tmp_path / "x").url == f"file:{tmp_path}/x"
    assert open_store("/").url == "file:/"
    assert open_store("/").uri("x") == "file:/x"


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}", "FILE:{}/"])
def test_file_urls_are_literal(tmp_path: Path, form: str) -> None:
    root = tmp_path / "a%20b c#?é"
    root.mkdir()
    (root / "x").write_bytes(b"1")
    store = open_store(form.format(root))
    assert isinstance(store, LocalStore)
    assert store.url == f"file:{root}"
    assert store.get("x") == b"1"


def test_memory_is_shared_by_url() -> None:
    open_store("memory://shared/t").put("a/x", b"1")
    assert open_store("memory://shared/t/").get("a/x") == b"1"
    assert open_store("memory://shared/t/a").get("x") == b"1"
    assert open_store("memory://shared").get("t/a/x") == b"1"
    assert open_store("memory://other/t").list_from("a") == []
    open_store("memory:shared-path").put("y", b"2")
    assert open_store("memory:/shared-path").get("y") == b"2"
    assert open_store("memory://shared/t").url == "memory://shared/t"


@pytest.mark.parametrize(
    ("url", "options", "canonical"),
    [
        ("s3://b/t//x/", {}, "s3a://b/t/x"),
        ("s3a://b", {}, "s3a://b"),
        ("gs://b/t x", {}, "gs://b/t x"),
        ("abfss://c@acc.dfs.core.windows.net/t", {}, "abfss://c@acc.dfs.core.windows.net/t"),
        ("abfs://c@acc.dfs.core.windows.net/t", {}, "abfss://c@acc.dfs.core.windows.net/t"),
        ("az://c/t", {"account_name": "acc"}, "abfss://c@acc.dfs.core.windows.net/t"),
    ],
)
def test_object_stores_have_the_urls_that_spark_reads(url: str, options: dict[str, str], canonical: str) -> None:
    store = open_store(url, options)
    assert store.url == canonical
    assert store.uri("p/q r") == f"{canonical}/p/q r"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("hdfs://namenode/t", "unknown-scheme"),
        ("my:table", "unknown-scheme"),
        ("file:t", "invalid-url"),
        ("file://host/t", "invalid-url"),
        ("s3:///t", "invalid-url"),
        ("", "invalid-path"),
        ("a\0b", "invalid-path"),
    ],
)
def test_urls_that_lead_nowhere(url: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store(url)
    assert caught.value.code == code
    assert caught.value.hint or code == "invalid-path"


@pytest.mark.parametrize("url", ["/tmp/t", "memory://x/t"])
def test_options_that_a_store_does_not_have(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store(url, {"alow_unsafe_put": "true"})
    assert caught.value.code == "unknown-option"
    assert "allow_unsafe_put" in str(caught.value)
