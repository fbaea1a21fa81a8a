"""Storage options by every name that they have, and values that are none."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from alluvium.errors import InvalidRequest
from alluvium.storage.store import ObjectInfo
from alluvium.storage.stores.object_options import ObjectOptions, parse_flag, parse_object_options, parse_plain_options
from alluvium.storage.stores.objects import _described

URLS = {"s3": "s3://my.bucket/t", "gcs": "gs://b/t", "azure": "abfss://c@mine.dfs.core.windows.net/t"}
#: Hadoop's names, and obstore's.
HADOOP: dict[str, dict[str, str]] = {
    "s3": {
        "fs.s3a.access.key": "access_key_id", "fs.s3a.secret.key": "secret_access_key", "fs.s3a.session.token": "session_token",
        "fs.s3a.endpoint.region": "region", "fs.s3a.encryption.algorithm": "server_side_encryption", "fs.s3a.encryption.key": "sse_kms_key_id",
    },
    "gcs": dict.fromkeys(("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile"), "service_account"),
    "azure": {
        "fs.azure.account.key": "account_key", "fs.azure.account.oauth2.client.id": "client_id", "fs.azure.sas.fixed.token": "sas_key",
        "fs.azure.account.oauth2.client.secret": "client_secret", "fs.azure.account.oauth2.msi.tenant": "tenant_id",
    },
}  # fmt: skip
PAIRS = [(kind, hadoop, own) for kind, names in HADOOP.items() for hadoop, own in names.items()]


def parsed(kind: str, **options: str) -> ObjectOptions:
    return parse_object_options(kind, options, URLS[kind], "mine" if kind == "azure" else None)


@pytest.mark.parametrize(("kind", "hadoop", "own"), PAIRS)
def test_names_of_hadoop(kind: str, hadoop: str, own: str) -> None:
    for name in (hadoop, f"spark.hadoop.{hadoop}"):
        assert parsed(kind, **{name: "v"}) == ObjectOptions({own: "v"})
    for other in set(HADOOP) - {kind}:
        with pytest.raises(InvalidRequest) as caught:
            parsed(other, **{hadoop: "v"})
        assert caught.value.code == "unknown-option" and caught.value.url == URLS[other]


@pytest.mark.parametrize("name", ["access_key_id", "AWS_ACCESS_KEY_ID", "anything", "Endpoint_Url"])
def test_other_names_are_obstores(name: str) -> None:
    """It checks them itself."""
    assert parsed("gcs", **{name: "v"}) == ObjectOptions({name.lower(): "v"})


CLIENT = ("allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only", "pool_idle_timeout", "pool_max_idle_per_host",
          "proxy_ca_certificate", "proxy_excludes", "proxy_url", "root_certificate", "timeout", "user_agent")  # fmt: skip


@pytest.mark.parametrize("name", CLIENT)
@pytest.mark.parametrize("kind", URLS)
def test_options_of_the_client(kind: str, name: str) -> None:
    assert parsed(kind, **{name.upper(): "v"}) == ObjectOptions({}, {name: "v"})


def test_retries() -> None:
    assert parsed("s3", max_retries="7", retry_timeout_s="1.5") == ObjectOptions(
        max_retries=7, retry_timeout=timedelta(seconds=1.5)
    )
    assert parsed("s3", MAX_RETRIES="0").max_retries == 0
    for name in ("max_retries", "retry_timeout_s"):
        with pytest.raises(InvalidRequest) as caught:
            parsed("s3", **{name: "many"})
        assert caught.value.code == "invalid-option"


FLAGS = {
    **dict.fromkeys(("true", "TRUE", " 1 ", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "No", "off", ""), False),
}


@pytest.mark.parametrize(("text", "value"), FLAGS.items())
def test_flags(text: str, value: bool) -> None:
    assert parse_flag("x", text) is value
    assert parsed("gcs", allow_unsafe_put=text).allow_unsafe_put is value
    assert parse_plain_options({"allow_unsafe_put": text}, "file:/t") is value


@pytest.mark.parametrize("text", ["maybe", "2", "truee"])
def test_what_is_no_flag(text: str) -> None:
    for act in (
        lambda: parse_flag("x", text),
        lambda: parsed("gcs", allow_unsafe_put=text),
        lambda: parse_plain_options({"allow_unsafe_put": text}, "u"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            act()
        assert caught.value.code == "invalid-option"


def test_plain_stores_have_one_option() -> None:
    assert parse_plain_options({}, "u") is False
    assert parse_plain_options({"fs.s3a.access.key": "k", "dfs.replication": "3"}, "u") is False
    for name in ("access_key_id", "xfs.a", "ALLOW_UNSAFE_PUT"):
        with pytest.raises(InvalidRequest) as caught:
            parse_plain_options({name: "true"}, "u")
        assert (caught.value.code, caught.value.url) == ("unknown-option", "u")


@pytest.mark.parametrize(
    ("options", "config", "client"),
    [
        ({"fs.s3a.endpoint": "host:9000"}, {"endpoint": "https://host:9000"}, {}), ({"fs.s3a.endpoint": "https://h"}, {"endpoint": "https://h"}, {}),
        ({"fs.s3a.endpoint": "http://h"}, {"endpoint": "http://h"}, {"allow_http": "true"}), ({"endpoint_url": "h"}, {"endpoint_url": "https://h"}, {}),
        ({"aws_endpoint_url": "http://h", "allow_http": "false"}, {"aws_endpoint_url": "http://h"}, {"allow_http": "false"}),
        ({"aws_endpoint": "h", "fs.s3a.connection.ssl.enabled": "false"}, {"aws_endpoint": "http://h"}, {"allow_http": "true"}),
        ({"fs.s3a.endpoint": "h", "fs.s3a.connection.ssl.enabled": "true"}, {"endpoint": "https://h"}, {}), ({"fs.s3a.connection.ssl.enabled": "false"}, {}, {}),
        ({"fs.s3a.path.style.access": "true"}, {"virtual_hosted_style_request": "false"}, {}), ({"fs.s3a.path.style.access": "false"}, {}, {}),
        ({"fs.s3a.encryption.algorithm": "SSE-KMS"}, {"server_side_encryption": "aws:kms"}, {}),
        ({"fs.s3a.encryption.algorithm": "DSSE-KMS"}, {"server_side_encryption": "aws:kms:dsse"}, {}),
        ({"fs.s3a.encryption.algorithm": "AES256"}, {"server_side_encryption": "AES256"}, {}),
    ],
    ids=str,
)  # fmt: skip
def test_switches_of_s3(options: dict[str, str], config: dict[str, str], client: dict[str, str]) -> None:
    assert parsed("s3", **options) == ObjectOptions(config, client)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("fs.s3a.bucket.my.bucket.access.key", {"access_key_id": "v"}), ("spark.hadoop.fs.s3a.bucket.my.bucket.endpoint.region", {"region": "v"}),
        ("fs.s3a.bucket.my.bucket.secret.key", {"secret_access_key": "v"}), ("fs.s3a.bucket.my.bucket.session.token", {"session_token": "v"}),
        ("fs.s3a.bucket.my.bucket.encryption.key", {"sse_kms_key_id": "v"}), ("fs.s3a.bucket.other.access.key", {}), ("fs.s3a.bucket.bucket.access.key", {}),
        ("fs.s3a.bucket.my.bucket.endpoint", {"endpoint": "https://v"}),
    ],
)  # fmt: skip
def test_options_of_a_bucket(name: str, config: dict[str, str]) -> None:
    assert parsed("s3", **{name: "v"}).config == config


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("fs.azure.account.key.mine.dfs.core.windows.net", {"account_key": "v"}), ("fs.azure.account.key.mine.blob.core.windows.net", {"account_key": "v"}),
        ("fs.azure.account.key.other.dfs.core.windows.net", {}), ("fs.azure.sas.fixed.token.mine.dfs.core.windows.net", {"sas_key": "v"}),
    ],
)  # fmt: skip
def test_options_of_an_account(name: str, config: dict[str, str]) -> None:
    assert parsed("azure", **{name: "v"}).config == config
    assert parse_object_options(
        "azure", {"fs.azure.account.key.other.dfs.core.windows.net": "v"}, "az://c/t"
    ).config == {"account_key": "v"}


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("access_key_id", "key\n", "invalid-option"), ("access_key_id", "a\x7fb", "invalid-option"), ("access_key_id", "\tk", "invalid-option"),
        ("endpoint", "https://user:secret@host", "credentials-in-url"), ("proxy_url", "http://user:secret@proxy\r", "invalid-option"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_sent(name: str, value: str, code: str) -> None:
    """No error repeats them."""
    with pytest.raises(InvalidRequest) as caught:
        parsed("s3", **{name: value})
    assert caught.value.code == code and "secret" not in str(caught.value) and name in str(caught.value)


def test_values_that_can() -> None:
    assert parsed("s3", access_key_id="a b@c/d").config == {"access_key_id": "a b@c/d"}
    assert parsed("s3", proxy_url="http://u:s@proxy").client == {"proxy_url": "http://u:s@proxy"}
    assert parsed("s3", user_agent="x://y").client == {"user_agent": "x://y"}


@pytest.mark.parametrize(
    ("told", "tag"),
    [('"x0x8DBx"', "x0x8DBx"), ("x0x8DBx", "x0x8DBx"), ("", ""), (None, "")],
)
def test_tags_of_objects_lose_their_quotes_alone(told: str | None, tag: str) -> None:
    meta = {"path": "a", "last_modified": datetime(2024, 1, 2, tzinfo=timezone.utc), "size": 7, "e_tag": told}
    assert _described("p/a", {**meta, "version": None}) == ObjectInfo("p/a", 7, 1_704_153_600_000, tag)
