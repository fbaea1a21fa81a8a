from __future__ import annotations

import os
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from obstore.store import AzureStore, GCSStore, S3Store

from alluvium.errors import InvalidRequest
from alluvium.storage.open import StoreOpener, open_store
from alluvium.storage.stores.hadoop import HadoopAccess
from alluvium.storage.stores.local import LocalStore
from alluvium.storage.stores.objects import ObjectStore


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


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("hdfs://namenode/t", "Spark session"), ("my:table", "./my:table"), ("file:t", "leave file: out"),
        ("file://host/a/t", "file:///host/a/t"), ("s3:///t", "scheme://bucket/path"), ("abfss:///t", "scheme://bucket/path"),
        ("abfss://@acc.dfs.core.windows.net/t", "scheme://bucket/path"),
    ],
)  # fmt: skip
def test_what_to_write_instead(url: str, hint: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store(url)
    assert hint in (caught.value.hint or "") and caught.value.url == url


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("s3://key:secret@bucket/t", True), ("s3a://key@bucket/t", True), ("gs://key@bucket/t", True), ("hdfs://u:p@host/t", True),
        ("https://u:p@host/t", True), ("abfss://c:x@acc.dfs.core.windows.net/t", True), ("hdfs://user@host/t", False),
        ("abfss://c@acc.dfs.core.windows.net/t", False), ("s3://bucket/a@b", False),
    ],
)  # fmt: skip
def test_no_address_has_credentials(url: str, refused: bool) -> None:
    """A user may stand before the host of a file system, and a container before an account's; a password nowhere."""
    if not refused:
        with pytest.raises(InvalidRequest, match="is not known") if url.startswith("hdfs") else nullcontext():
            open_store(url)
        return
    with pytest.raises(InvalidRequest) as caught:
        open_store(url)
    assert caught.value.code == "credentials-in-url"
    shown = f"{caught.value} {caught.value.url}"
    assert not any(secret in shown for secret in ("key:", "secret@", "key@", "u:p", "c:x"))


def bucket_of(url: str, **options: str) -> Any:
    store = open_store(url, options)
    assert isinstance(store, ObjectStore)
    return store._bucket


def test_what_a_bucket_is_made_with() -> None:
    made = bucket_of("s3n://b/t", region="eu-north-1", access_key_id="k", secret_access_key="s")
    assert isinstance(made, S3Store) and dict(made.config)["region"] == "eu-north-1"
    assert isinstance(bucket_of("gcs://b/t"), GCSStore)
    for scheme in ("az", "azure"):
        made = bucket_of(f"{scheme}://c/t", account_name="mine", account_key="a2V5")
        assert isinstance(made, AzureStore) and dict(made.config)["account_name"] == "mine"
    # The account of the address counts, unless an option names another.
    made = bucket_of("abfss://c@mine.dfs.core.windows.net/t", account_key="a2V5")
    assert dict(made.config)["account_name"] == "mine"
    made = bucket_of("abfss://c@mine.dfs.core.windows.net/t", account_key="a2V5", account_name="other")
    assert dict(made.config)["account_name"] == "other"


@pytest.mark.parametrize(
    ("options", "retries"),
    [
        ({}, {}), ({"max_retries": "3"}, {"max_retries": 3}), ({"max_retries": "0"}, {"max_retries": 0}),
        ({"retry_timeout_s": "1.5"}, {"retry_timeout": timedelta(seconds=1.5)}),
        ({"max_retries": "2", "retry_timeout_s": "0"}, {"max_retries": 2, "retry_timeout": timedelta(0)}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("url", ["s3://b/t", "gs://b/t", "az://c/t"])
def test_how_often_a_request_is_repeated(url: str, options: dict[str, str], retries: dict[str, Any]) -> None:
    account = {"account_name": "mine", "account_key": "a2V5"} if url.startswith("az") else {}
    made = dict(bucket_of(url, **options, **account).retry_config)
    # obstore's own, where nothing is said.
    usual = {"max_retries": 10, "retry_timeout": timedelta(minutes=3)}
    assert {name: made[name] for name in usual} == {**usual, **retries}


@pytest.mark.parametrize("url", ["az://c/t", "azure://c/t", "abfss://c/t"])
def test_azure_without_an_account(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store(url)
    assert (caught.value.code, caught.value.url) == ("invalid-option", url)


def test_an_opener_opens_others_with_the_same_settings(tmp_path: Path) -> None:
    opener = StoreOpener(str(tmp_path / "t"), {"allow_unsafe_put": "true"})
    assert opener().url == f"file:{tmp_path}/t"
    assert opener(str(tmp_path / "u")).url == f"file:{tmp_path}/u"
    with pytest.raises(InvalidRequest):
        StoreOpener(str(tmp_path), {"allow_unsafe_put": "perhaps"})()
    assert StoreOpener("memory://opened/t")().url == "memory://opened/t"


class Configured:
    """A session's Hadoop configuration, and what was asked of it."""

    def __init__(self, **values: str) -> None:
        self.values = values
        self.asked: list[str] = []

    def getTrimmed(self, name: str) -> str | None:
        self.asked.append(name)
        return self.values.get(name)


def config_of(url: str, session: Configured, **options: str) -> dict[str, Any]:
    store = open_store(url, options, HadoopAccess(None, session))
    assert isinstance(store, ObjectStore)
    return dict(store._bucket.config)  # type: ignore[arg-type]


def test_what_the_session_says_counts_below_the_options() -> None:
    session = Configured(
        **{
            "fs.s3a.access.key": "of the session",
            "fs.s3a.endpoint.region": "eu-north-1",
            "fs.s3a.secret.key": "s",
            "fs.s3a.encryption.key": "",
        }
    )
    found = config_of("s3://b/t", session, **{"fs.s3a.access.key": "own", "fs.s3a.session.token": "t"})
    assert (found["access_key_id"], found["region"], found["session_token"]) == ("own", "eu-north-1", "t")
    assert found["secret_access_key"] == "s" and "aws_sse_kms_key_id" not in found
    assert config_of("s3a://b/t", session)["access_key_id"] == "of the session"
    assert set(session.asked) == {
        "fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token", "fs.s3a.endpoint", "fs.s3a.endpoint.region", "fs.s3a.path.style.access",
        "fs.s3a.connection.ssl.enabled", "fs.s3a.encryption.algorithm", "fs.s3a.encryption.key",
    }  # fmt: skip


def test_the_session_s_settings_of_an_account_go_before_those_of_all() -> None:
    key = "fs.azure.account.key"
    session = Configured(**{f"{key}.mine.dfs.core.windows.net": "bWluZQ==", key: "YWxs"})
    assert config_of("abfss://c@mine.dfs.core.windows.net/t", session)["account_key"] == "bWluZQ=="
    assert config_of("abfss://c@other.dfs.core.windows.net/t", session)["account_key"] == "YWxs"
    # Without an account in the address there is but the one for all.
    assert config_of("az://c/t", session, account_name="mine")["account_key"] == "YWxs"
    assert config_of("abfss://c@mine.dfs.core.windows.net/t", session, account_key="b3du")["account_key"] == "b3du"


def test_local_stores_ask_no_session(tmp_path: Path) -> None:
    session = Configured()
    for url in (str(tmp_path), f"file:{tmp_path}", "memory://session/t"):
        open_store(url, None, HadoopAccess(None, session))
    assert session.asked == []


@pytest.mark.parametrize("url", ["s3://b/t", "gs://b/t", "az://c/t", "{tmp_path}"])
@pytest.mark.parametrize("text", [None, "false", "true"])
def test_whoever_accepts_lost_commits_says_so(url: str, text: str | None, tmp_path: Path) -> None:
    options = {} if text is None else {"allow_unsafe_put": text}
    if url.startswith("az"):
        options |= {"account_name": "mine", "account_key": "a2V5"}
    store = open_store(url.format(tmp_path=tmp_path), options)
    unsafe = store.access[1] if isinstance(store.access, tuple) else store.access
    assert unsafe is (text == "true")


def test_options_that_are_given_stay_as_they_are() -> None:
    options = {"allow_unsafe_put": "true", "region": "eu-north-1"}
    open_store("s3://b/t", options)
    assert options == {"allow_unsafe_put": "true", "region": "eu-north-1"}


@pytest.mark.parametrize("url", ["s3://b/t", "gs://b/t"])
def test_options_that_do_not_fit_are_told_in_a_line(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store(url, {"nonsense": "a"})
    assert (caught.value.code, caught.value.url) == ("invalid-option", url)
    assert "nonsense" in caught.value.message and "\n" not in caught.value.message
