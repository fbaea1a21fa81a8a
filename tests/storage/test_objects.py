"""Object stores: what conditional puts come to when the store answers oddly or not at all."""

from __future__ import annotations

import pytest
from s3_server import S3Bucket

from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.storage.object_options import parse_object_options
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome, Store


@pytest.fixture
def s3(s3_options: dict[str, str]) -> Store:
    return open_store("s3://bucket/t", s3_options)


def test_keys_carry_the_prefix(s3: Store, s3_bucket: S3Bucket) -> None:
    s3.put("a b/é%20", b"1")
    assert s3_bucket.objects == {"t/a b/é%20": b"1"}
    assert s3.url == "s3a://bucket/t"
    assert s3.uri("a b/é%20") == "s3a://bucket/t/a b/é%20"


@pytest.mark.parametrize("fault", [500, 503, 429, "drop"])
def test_without_a_clear_answer_the_outcome_is_unknown(s3: Store, s3_bucket: S3Bucket, fault: int | str) -> None:
    s3_bucket.fault = fault
    assert s3.put_if_absent("x", b"1") is PutOutcome.UNKNOWN
    assert s3_bucket.objects == {}


def test_a_lost_response_is_unknown_though_the_object_stands(s3: Store, s3_bucket: S3Bucket) -> None:
    s3_bucket.fault = "lose"
    assert s3.put_if_absent("x", b"1") is PutOutcome.UNKNOWN
    assert s3_bucket.objects == {"t/x": b"1"}


def test_a_store_that_is_gone_is_unknown() -> None:
    gone = open_store(
        "s3://bucket/t",
        {"endpoint": "http://127.0.0.1:9", "access_key_id": "a", "secret_access_key": "b", "max_retries": "0"},
    )
    assert gone.put_if_absent("x", b"1") is PutOutcome.UNKNOWN
    with pytest.raises(AlluviumError) as caught:
        gone.get("x")
    assert caught.value.code == "storage"


@pytest.mark.parametrize("fault", [400, 401, 403, 404])
def test_a_clear_refusal_is_raised(s3: Store, s3_bucket: S3Bucket, fault: int) -> None:
    s3_bucket.fault = fault
    with pytest.raises(AlluviumError) as caught:
        s3.put_if_absent("x", b"1")
    assert caught.value.path == "x"
    assert ("credentials" in str(caught.value)) == (fault in (401, 403))


def test_a_conflict_with_nothing_there_is_unknown(s3: Store, s3_bucket: S3Bucket) -> None:
    s3_bucket.fault = 409  # ConditionalRequestConflict: another put is under way, and may come to nothing
    assert s3.put_if_absent("x", b"1") is PutOutcome.UNKNOWN
    s3_bucket.objects["t/x"] = b"theirs"
    assert s3.put_if_absent("x", b"1") is PutOutcome.EXISTS


@pytest.mark.parametrize("by", ["server", "option"])
def test_without_conditional_put_writing_is_refused(s3_bucket: S3Bucket, s3_options: dict[str, str], by: str) -> None:
    if by == "server":
        s3_bucket.conditional = False
    else:
        s3_options["conditional_put"] = "disabled"
    with pytest.raises(InvalidRequest) as caught:
        open_store("s3a://bucket/t", s3_options).put_if_absent("x", b"1")
    assert caught.value.code == "no-put-if-absent"
    assert "allow_unsafe_put" in str(caught.value)
    assert s3_bucket.objects == {}

    unsafe = open_store("s3a://bucket/t", {**s3_options, "allow_unsafe_put": "true"})
    assert unsafe.put_if_absent("x", b"1") is PutOutcome.DONE
    assert unsafe.put_if_absent("x", b"2") is PutOutcome.EXISTS
    assert s3_bucket.objects == {"t/x": b"1"}


def test_opting_out_does_not_weaken_a_store_that_can(s3_bucket: S3Bucket, s3_options: dict[str, str]) -> None:
    store = open_store("s3a://bucket/t", {**s3_options, "allow_unsafe_put": "true"})
    assert store.put_if_absent("x", b"1") is PutOutcome.DONE
    assert store.put_if_absent("x", b"2") is PutOutcome.EXISTS
    assert s3_bucket.puts == ["t/x", "t/x"]


def test_control_characters_are_refused_before_anything_is_sent(s3: Store, s3_bucket: S3Bucket) -> None:
    with pytest.raises(InvalidRequest) as caught:
        s3.put_if_absent("a\tb", b"1")
    assert caught.value.code == "invalid-path"
    assert s3_bucket.puts == []


def test_many_objects_are_deleted_and_listed(s3: Store, s3_bucket: S3Bucket) -> None:
    s3_bucket.objects.update({f"t/d/{n}": b"" for n in range(2500)})
    s3_bucket.objects["t/e"] = b""
    assert len(list(s3.list_tree("d"))) == 2500
    s3.delete_tree("d")
    assert list(s3_bucket.objects) == ["t/e"]


def test_hadoop_spellings() -> None:
    options = parse_object_options(
        "s3",
        {
            "spark.hadoop.fs.s3a.access.key": "a",
            "fs.s3a.secret.key": "b",
            "fs.s3a.endpoint": "minio:9000",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.bucket.my.bucket.endpoint.region": "eu",
            "fs.s3a.bucket.other.session.token": "no",
            "fs.s3a.encryption.algorithm": "SSE-KMS",
            "AWS_SESSION_TOKEN": "t",
            "timeout": "30s",
            "max_retries": "3",
            "allow_unsafe_put": "True",
        },
        "s3a://my.bucket/t",
    )
    assert options.config == {
        "access_key_id": "a", "secret_access_key": "b", "endpoint": "http://minio:9000", "region": "eu",
        "virtual_hosted_style_request": "false", "server_side_encryption": "aws:kms", "aws_session_token": "t",
    }  # fmt: skip
    assert options.client == {"timeout": "30s", "allow_http": "true"}
    assert options.max_retries == 3
    assert options.allow_unsafe_put


def test_azure_keys_belong_to_their_account() -> None:
    options = {
        "fs.azure.account.key.mine.dfs.core.windows.net": "bWluZQ==",
        "fs.azure.account.key.other.dfs.core.windows.net": "b3RoZXI=",
    }
    parsed = parse_object_options("azure", options, "abfss://c@mine.dfs.core.windows.net/t", "mine")
    assert parsed.config == {"account_key": "bWluZQ=="}


@pytest.mark.parametrize(
    ("options", "code", "hint"),
    [
        ({"fs.s3a.acces.key": "a"}, "unknown-option", "fs.s3a.access.key"),
        ({"nonsense": "a"}, "invalid-option", "nonsense"),
        ({"allow_unsafe_put": "maybe"}, "invalid-option", "true"),
        ({"max_retries": "many"}, "invalid-option", "number"),
        ({"timeout": "soon"}, "invalid-option", "soon"),
    ],
)
def test_options_that_cannot_be_understood(options: dict[str, str], code: str, hint: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_store("s3://bucket/t", options)
    assert caught.value.code == code
    assert hint in str(caught.value)
