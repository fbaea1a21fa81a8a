"""From a URL to the store behind it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from alluvium.errors import InvalidRequest, WrongType
from alluvium.storage.failures import ALLOW_UNSAFE_PUT
from alluvium.storage.paths import Url, split_url
from alluvium.storage.store import Store
from alluvium.storage.stores.hadoop import HadoopAccess, HadoopStore
from alluvium.storage.stores.local import LocalStore
from alluvium.storage.stores.memory import MemoryStore
from alluvium.storage.stores.object_options import (
    HADOOP_OPTIONS,
    ObjectOptions,
    parse_flag,
    parse_object_options,
    parse_plain_options,
)
from alluvium.storage.stores.objects import Bucket, ObjectStore

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, RetryConfig, S3Config

_KINDS = {
    "s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gcs", "gcs": "gcs",
    "az": "azure", "azure": "azure", "abfs": "azure", "abfss": "azure",
}  # fmt: skip
#: As Spark's Hadoop connectors spell them.
_CANONICAL_SCHEMES = {"s3": "s3a", "gcs": "gs", "azure": "abfss"}
_AZURE_HOST = ".dfs.core.windows.net"


def access_of(storage_options: Mapping[str, str] | None) -> dict[str, str]:
    """Credentials and settings as a caller gives them.

    Raises:
        WrongType: They map no names to values.
    """
    given = {} if storage_options is None else storage_options
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return dict(given)
    # What it is may be a secret.
    raise WrongType(f"storage_options must map names to values, not be of type {type(given).__name__}")


def path_of(url: str | os.PathLike[str]) -> str:
    """A table's place as a caller gives it.

    Raises:
        WrongType: It is neither text nor a path.
    """
    # Paths of object stores (universal_pathlib) are none of the local disk.
    path = str(url) if hasattr(url, "as_uri") else os.fspath(url) if isinstance(url, (str, os.PathLike)) else None
    if isinstance(path, str):
        return path
    raise WrongType(f"a table's place must be text or a path, not {url!r:.80} of type {type(url).__name__}")


def open_store(
    url: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    hadoop: HadoopAccess | None = None,
) -> Store:
    """The store of the objects below `url`. Nothing is read yet, and the root need not exist.

    Args:
        url: A local path (a relative one starts at the working directory), `file:/path` (literal, not percent-decoded,
            as in Hadoop), `memory://name/path`, `s3://`, `s3a://`, `gs://`, `abfss://container@account...`,
            `az://container/path`; any other scheme goes to `hadoop`.
        storage_options: For object stores obstore's options or Hadoop's (`access_key_id`, `fs.s3a.access.key`, ...),
            for other Hadoop file systems entries of the configuration; for all of them `allow_unsafe_put`.
        hadoop: A JVM. Credentials that its configuration holds for an object store count, too, below the options.

    Raises:
        InvalidRequest: The URL or an option cannot be understood, or nobody knows the scheme (`"unknown-scheme"`).
    """
    text = path_of(url)
    options = access_of(storage_options)
    parts = split_url(text)
    _ensure_no_secret(parts)
    if parts.scheme in ("", "file"):
        return _open_local(parts, text, options)
    if parts.scheme == "memory":
        parse_plain_options(options, text)
        return MemoryStore(parts.authority, parts.path)
    if parts.scheme in _KINDS:
        return _open_objects(parts, text, options, hadoop)
    if hadoop is None:
        raise InvalidRequest(
            f"the scheme {parts.scheme!r} of {text!r} is not known",
            code="unknown-scheme",
            url=text,
            hint="without Spark there are file:, memory:, s3://, s3a://, gs://, abfss:// and az://; "
            f"with a Spark session its Hadoop file systems, too. A local path is written ./{text}",
        )
    unsafe = parse_flag(ALLOW_UNSAFE_PUT, options.pop(ALLOW_UNSAFE_PUT, "false"))
    return HadoopStore(hadoop, text, options, allow_unsafe_put=unsafe)


@dataclass(frozen=True, slots=True)
class StoreOpener:
    """Opens a store, or others with the same settings, wherever it is sent to.

    Attributes:
        url: Of the store.
        storage_options: Credentials and settings.
    """

    url: str
    storage_options: Mapping[str, str] | None = None

    def __call__(self, url: str | None = None) -> Store:
        return open_store(self.url if url is None else url, self.storage_options)


def _ensure_no_secret(parts: Url) -> None:
    """An address is shown in errors, plans and histories: keys have no place in it."""
    user, at, host = parts.authority.rpartition("@")
    if at and (":" in user or _KINDS.get(parts.scheme) in ("s3", "gcs")):
        shown = str(Url(parts.scheme, host, parts.path))
        raise InvalidRequest(
            f"the address of {shown!r} has credentials before the @",
            code="credentials-in-url",
            url=shown,
            hint="leave them out, and give them as storage_options (access_key_id, secret_access_key, ...)",
        )


def _open_local(parts: Url, text: str, options: dict[str, str]) -> Store:
    if parts.authority not in ("", "localhost"):
        raise InvalidRequest(
            f"{text!r} names the host {parts.authority!r}, but file: is this machine's disk",
            code="invalid-url",
            url=text,
            hint=f"write file:///{parts.authority}{parts.path} with three slashes",
        )
    if parts.scheme and not parts.path.startswith("/"):
        raise InvalidRequest(
            f"{text!r} is a file: URL with a relative path", code="invalid-url", url=text, hint="leave file: out"
        )
    return LocalStore(os.path.abspath(parts.path), allow_unsafe_put=parse_plain_options(options, text))


def _open_objects(parts: Url, text: str, options: dict[str, str], hadoop: HadoopAccess | None) -> Store:
    kind = _KINDS[parts.scheme]
    container, account = parts.authority, None
    if kind == "azure" and "@" in parts.authority:
        container, host = parts.authority.split("@", 1)
        account = host.partition(".")[0]
    if not container:
        raise InvalidRequest(f"{text!r} names no bucket", code="invalid-url", url=text, hint="scheme://bucket/path")
    if hadoop is not None:
        options = {**_session_options(kind, hadoop, account), **options}
    parsed = parse_object_options(kind, options, text, account)
    try:
        bucket = _make_bucket(kind, container, account, parsed)
    except (BaseError, ValueError) as error:
        raise InvalidRequest(
            f"the storage options of {text!r} do not fit: {str(error).partition(chr(10))[0]}",
            code="invalid-option",
            url=text,
            hint="option names are those of obstore, e.g. access_key_id, or of Hadoop, e.g. fs.s3a.access.key",
        ) from error
    authority = parts.authority
    if isinstance(bucket, AzureStore) and "@" not in authority:
        authority = f"{container}@{bucket.config.get('account_name', '')}{_AZURE_HOST}"
    canonical = str(Url(_CANONICAL_SCHEMES[kind], authority, parts.path))
    return ObjectStore(bucket, parts.path.strip("/"), canonical, allow_unsafe_put=parsed.allow_unsafe_put)


def _session_options(kind: str, hadoop: HadoopAccess, account: str | None) -> dict[str, str]:
    """What the session's Hadoop configuration says of an object store, where it says something."""
    found: dict[str, str] = {}
    for name in HADOOP_OPTIONS[kind]:
        names = (f"{name}.{account}{_AZURE_HOST}", name) if kind == "azure" and account else (name,)
        for candidate in names:
            if value := hadoop.conf.getTrimmed(candidate):
                found[candidate] = str(value)
                break
    return found


def _make_bucket(kind: str, container: str, account: str | None, options: ObjectOptions) -> Bucket:
    # obstore checks the names at run time.
    client = cast("ClientConfig", dict(options.client))
    retry: RetryConfig = {}
    if options.max_retries is not None:
        retry["max_retries"] = options.max_retries
    if options.retry_timeout is not None:
        retry["retry_timeout"] = options.retry_timeout
    config = dict(options.config)
    if kind == "s3":
        return S3Store(container, config=cast("S3Config", config), client_options=client, retry_config=retry)
    if kind == "gcs":
        return GCSStore(container, config=cast("GCSConfig", config), client_options=client, retry_config=retry)
    if account is not None:
        config.setdefault("account_name", account)
    return AzureStore(container, config=cast("AzureConfig", config), client_options=client, retry_config=retry)
