"""`_last_checkpoint`: the hint where to begin listing, with a checksum over its content.

Specification: "Last Checkpoint File", "Last Checkpoint File Schema", "JSON checksum".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from urllib.parse import quote

import msgspec

from alluvium.delta.log.names import LAST_CHECKPOINT_PATH, MAX_VERSION
from alluvium.delta.terms.spec import LastCheckpoint
from alluvium.errors import DECODE_ERRORS, NotFound
from alluvium.storage.store import Store

_HINT = msgspec.json.Decoder(LastCheckpoint)
# "Numeric values (e.g. `42` or `3.14`) are their own canonical form": decimals keep their digits.
_DOCUMENT = msgspec.json.Decoder(dict[str, object], float_hook=Decimal)
_CHECKSUM = "checksum"


def read_last_checkpoint(store: Store) -> LastCheckpoint | None:
    """The hint; None if it is missing, makes no sense, or contradicts its own checksum."""
    try:
        data = store.get(LAST_CHECKPOINT_PATH)
        hint = _HINT.decode(data)
    except NotFound:
        return None
    except DECODE_ERRORS:
        return None
    # "Last checkpoint file readers are encouraged to validate the checksum, if present"
    if hint.checksum is not None and not _is_whole(data, hint.checksum):
        return None
    return hint if 0 <= hint.version <= MAX_VERSION else None


def publish_last_checkpoint(store: Store, last: LastCheckpoint) -> bool:
    """Points to a checkpoint, unless the pointer is at a newer one already; whether it did."""
    newest = read_last_checkpoint(store)
    if newest is not None and newest.version > last.version:
        return False
    store.put(LAST_CHECKPOINT_PATH, format_last_checkpoint(last))
    return True


def format_last_checkpoint(last: LastCheckpoint) -> bytes:
    """ "writers are encouraged to write the checksum while overwriting the file" """
    document = msgspec.to_builtins(last)
    document[_CHECKSUM] = json_checksum(document)
    return msgspec.json.encode(document)


def json_checksum(document: Mapping[str, object]) -> str:
    """The MD5 of the canonical form of a JSON object, 32 hexadecimal digits.

    "Top level `checksum` key is ignored in the canonicalization process."
    """
    content = {name: value for name, value in document.items() if name != _CHECKSUM}
    # A check against accidents, not against people.
    return hashlib.md5(canonical_json(content).encode(), usedforsecurity=False).hexdigest()


def canonical_json(value: object) -> str:
    """ "Connect path segments by `+` [...] Connect path and value pairs by `=` [...] Sort canonicalized path/value
    pairs using a byte-order sort on paths [...] Separate ordered pairs by `,`"
    """
    pairs = sorted(_leaves((), value), key=lambda pair: pair[0].encode())
    return ",".join(f"{path}={leaf}" for path, leaf in pairs)


def _leaves(path: tuple[str, ...], value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _leaves((*path, _text(name)), below)
    # "Array values [...] are canonicalized as if they were objects, except the "name" has numeric type"
    elif isinstance(value, list):
        for place, below in enumerate(value):
            yield from _leaves((*path, str(place)), below)
    else:
        yield "+".join(path), _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Decimal):
        return str(value)
    return msgspec.json.encode(value).decode()


def _text(value: str) -> str:
    """ "All octets except a-z / A-Z / 0-9 / "-" / "." / "_" / "~" are reserved" """
    return f'"{quote(value, safe="-._~")}"'


def _is_whole(data: bytes, checksum: str) -> bool:
    try:
        return json_checksum(_DOCUMENT.decode(data)) == checksum
    except DECODE_ERRORS:
        return False
