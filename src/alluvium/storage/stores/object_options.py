"""Storage options: obstore's own names, those of the environment, and those of Hadoop, onto one configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from alluvium.errors import InvalidRequest, suggest
from alluvium.storage.failures import ALLOW_UNSAFE_PUT
from alluvium.storage.paths import split_url

#: Hadoop's name -> obstore's, for each kind of store.
HADOOP_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "s3": {
        "fs.s3a.access.key": "access_key_id",
        "fs.s3a.secret.key": "secret_access_key",
        "fs.s3a.session.token": "session_token",
        "fs.s3a.endpoint": "endpoint",
        "fs.s3a.endpoint.region": "region",
        "fs.s3a.path.style.access": "path_style_access",
        "fs.s3a.connection.ssl.enabled": "ssl_enabled",
        "fs.s3a.encryption.algorithm": "server_side_encryption",
        "fs.s3a.encryption.key": "sse_kms_key_id",
    },
    "gcs": {
        "fs.gs.auth.service.account.json.keyfile": "service_account",
        "google.cloud.auth.service.account.json.keyfile": "service_account",
    },
    "azure": {
        "fs.azure.account.key": "account_key",
        "fs.azure.account.oauth2.client.id": "client_id",
        "fs.azure.account.oauth2.client.secret": "client_secret",
        "fs.azure.account.oauth2.msi.tenant": "tenant_id",
        "fs.azure.sas.fixed.token": "sas_key",
    },
}
#: Where Hadoop sets an option for one account: `<option>.<account>.dfs.core.windows.net`.
_ACCOUNT_SUFFIX = re.compile(r"\.([a-z0-9]+)\.(?:dfs|blob)\.core\.windows\.net$")
_CLIENT_OPTIONS = frozenset(
    {
        "allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only", "pool_idle_timeout",
        "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes", "proxy_url", "root_certificate", "timeout",
        "user_agent",
    }
)  # fmt: skip
#: Hadoop's `fs.s3a.encryption.algorithm` -> obstore's.
_ENCRYPTIONS = {"SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
_ENDPOINTS = ("endpoint", "aws_endpoint", "endpoint_url", "aws_endpoint_url")
#: `fs.s3a.bucket.NAME.OPTION`; a bucket's name may hold dots, hence the first words that options begin with.
_PER_BUCKET = re.compile(
    r"fs\.s3a\.bucket\.(.+?)\.((?:access|secret|session|endpoint|path|connection|encryption)\..+|endpoint)"
)
_RETRY_OPTIONS = ("max_retries", "retry_timeout_s")
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off", ""})


@dataclass(frozen=True, slots=True)
class ObjectOptions:
    """What a store is made with.

    Attributes:
        config: obstore's configuration of the store, by its own names.
        client: obstore's options of the HTTP client.
        max_retries: How often a request is repeated; None for obstore's default (10).
        retry_timeout: How long it is repeated; None for obstore's default (3 minutes).
        allow_unsafe_put: Look and then put where the store has no conditional put.
    """

    config: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str | bool] = field(default_factory=dict)
    max_retries: int | None = None
    retry_timeout: timedelta | None = None
    allow_unsafe_put: bool = False


def parse_flag(name: str, text: str) -> bool:
    """The truth of an option's text.

    Raises:
        InvalidRequest: It is neither true nor false.
    """
    folded = str(text).strip().lower()
    if folded in _TRUE:
        return True
    if folded in _FALSE:
        return False
    raise InvalidRequest(
        f"the storage option {name} is {text!r}", code="invalid-option", hint="it is either 'true' or 'false'"
    )


def parse_plain_options(options: Mapping[str, str], url: str) -> bool:
    """The value of `allow_unsafe_put`, for stores that know no other option.

    Settings of Hadoop's file systems (`fs.`, `dfs.`) mean nothing to these stores: who gives them to all tables alike
    means others.

    Raises:
        InvalidRequest: There is another option.
    """
    for name in options:
        if name != ALLOW_UNSAFE_PUT and not name.startswith(("fs.", "dfs.")):
            raise unknown_option(name, (ALLOW_UNSAFE_PUT,), url)
    return parse_flag(ALLOW_UNSAFE_PUT, options.get(ALLOW_UNSAFE_PUT, "false"))


def unknown_option(name: str, known: tuple[str, ...], url: str) -> InvalidRequest:
    """The error for an option that the store of `url` does not have."""
    return InvalidRequest(
        f"the storage of this table has no option {name!r}", code="unknown-option", url=url, hint=suggest(name, known)
    )


def parse_object_options(kind: str, options: Mapping[str, str], url: str, account: str | None = None) -> ObjectOptions:
    """Sorts options by their receiver; names of obstore's configuration are left to obstore to check.

    Args:
        kind: `"s3"`, `"gcs"` or `"azure"`.
        options: Names in obstore's spelling (`access_key_id`, `AWS_ACCESS_KEY_ID`) or Hadoop's, there also with
            `spark.hadoop.` in front, and per bucket (`fs.s3a.bucket.NAME.`) or Azure account.
        url: The table, for errors, and for its bucket.
        account: The Azure account of the URL.

    Raises:
        InvalidRequest: An option of Hadoop that has no counterpart here, or a value that cannot be read.
    """
    config: dict[str, str] = {}
    client: dict[str, str | bool] = {}
    rest: dict[str, str] = {}
    for raw_name, value in options.items():
        name = _short_name(kind, raw_name, url, account)
        _ensure_sendable(raw_name, value, url)
        if name in _CLIENT_OPTIONS:
            client[name] = value
        elif name in _RETRY_OPTIONS or name in (ALLOW_UNSAFE_PUT, "path_style_access", "ssl_enabled"):
            rest[name] = value
        elif name:
            config[name] = value
    if kind == "s3":
        _apply_s3_switches(config, client, rest)
    return ObjectOptions(
        config,
        client,
        max_retries=int(_number("max_retries", rest["max_retries"])) if "max_retries" in rest else None,
        retry_timeout=timedelta(seconds=_number("retry_timeout_s", rest["retry_timeout_s"]))
        if "retry_timeout_s" in rest
        else None,
        allow_unsafe_put=parse_flag(ALLOW_UNSAFE_PUT, rest.get(ALLOW_UNSAFE_PUT, "false")),
    )


def _ensure_sendable(name: str, value: object, url: str) -> None:
    """Values go into headers and addresses. They may be secrets, so no error repeats them."""
    text = str(value)
    if any(character < " " or character == "\x7f" for character in text):
        raise InvalidRequest(
            f"the storage option {name} holds a control character, such as a line break at its end",
            code="invalid-option",
            url=url,
            hint="strip it",
        )
    if name.lower() != "proxy_url" and "://" in text and "@" in urlsplit(text).netloc:
        raise InvalidRequest(
            f"the storage option {name} has credentials before the @",
            code="credentials-in-url",
            url=url,
            hint="leave them out of the address, and give them as options of their own",
        )


def _short_name(kind: str, raw_name: str, url: str, account: str | None) -> str:
    """obstore's name of an option; empty for an option of another bucket or account."""
    name = raw_name.removeprefix("spark.hadoop.")
    if not name.startswith(("fs.", "google.")):
        return name.lower()
    if kind == "s3" and (per_bucket := _PER_BUCKET.fullmatch(name)):
        if split_url(url).authority != per_bucket[1]:
            return ""
        name = f"fs.s3a.{per_bucket[2]}"
    if kind == "azure" and (per_account := _ACCOUNT_SUFFIX.search(name)):
        if account is not None and per_account[1] != account:
            return ""
        name = _ACCOUNT_SUFFIX.sub("", name)
    known = HADOOP_OPTIONS[kind]
    if name not in known:
        raise unknown_option(raw_name, tuple(known), url)
    return known[name]


def _apply_s3_switches(config: dict[str, str], client: dict[str, str | bool], rest: Mapping[str, str]) -> None:
    # Only "true" has a meaning here: "false" is Hadoop's default, while a virtual host of a custom endpoint would have
    # to be spelled out in the endpoint itself.
    if parse_flag("path.style.access", rest.get("path_style_access", "false")):
        config["virtual_hosted_style_request"] = "false"
    encryption = config.get("server_side_encryption", "")
    if encryption in _ENCRYPTIONS:
        config["server_side_encryption"] = _ENCRYPTIONS[encryption]
    endpoint_key = next((name for name in _ENDPOINTS if name in config), "")
    endpoint = config.get(endpoint_key, "")
    if endpoint and "://" not in endpoint:  # Hadoop allows a bare host
        secure = parse_flag("connection.ssl.enabled", rest.get("ssl_enabled", "true"))
        endpoint = config[endpoint_key] = f"{'https' if secure else 'http'}://{endpoint}"
    if endpoint.startswith("http://"):
        client.setdefault("allow_http", "true")  # whoever writes http:// means it


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InvalidRequest(
            f"the storage option {name} is {text!r}", code="invalid-option", hint="it is a number"
        ) from error
