"""Consumers: how far readers of streams have come. Snapshots that one has not read yet do not expire.

Specification: `org.apache.paimon.consumer.ConsumerManager`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from alluvium.errors import DECODE_ERRORS, CorruptTable, InvalidRequest, NotFound
from alluvium.paimon.log.names import ensure_name, list_names
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.terms.patterns import parse_pattern
from alluvium.paimon.terms.spec import Long
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

_PREFIX = "consumer-"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader.

    Attributes:
        name: Its `consumer-id`.
        next_snapshot: What it reads next.
    """

    name: str
    next_snapshot: int


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    next_snapshot: Long


def list_consumers(store: Store, branch: str = MAIN_BRANCH) -> list[Consumer]:
    """The consumers there are, by name.

    Raises:
        CorruptTable: A document cannot be read (`"invalid-consumer"`): nobody knows what that reader needs.
    """
    names = sorted(list_names(store, _folder(branch), _PREFIX))
    found = map_parallel(lambda name: _read(store, name, branch), names)
    return [one for one in found if one is not None]


def least_next_snapshot(store: Store, branch: str = MAIN_BRANCH) -> int | None:
    """What the slowest consumer reads next; None: there is none."""
    return min((one.next_snapshot for one in list_consumers(store, branch)), default=None)


def reset_consumer(store: Store, name: str, next_snapshot: int | None, branch: str = MAIN_BRANCH) -> None:
    """Has a consumer go on at a snapshot; without one it is forgotten.

    Raises:
        InvalidRequest: No name of a consumer, or no number of a snapshot.
    """
    path = f"{_folder(branch)}/{_PREFIX}{ensure_name(name, 'consumer')}"
    if next_snapshot is None:
        store.delete(path)
        return
    if next_snapshot < 0:
        raise InvalidRequest(f"{next_snapshot} is no snapshot", code="invalid-version")
    store.put(path, msgspec.json.format(msgspec.json.encode(_Document(next_snapshot)), indent=2))


def clear_consumers(
    store: Store, including: str | None = None, excluding: str | None = None, branch: str = MAIN_BRANCH
) -> list[str]:
    """Forgets consumers; their names.

    Args:
        store: The table's objects.
        including: A regular expression: only those whose whole name it matches.
        excluding: A regular expression: not those whose whole name it matches.
        branch: Whose.
    """
    wanted, spared = parse_pattern(including) or re.compile(".*"), parse_pattern(excluding)
    names = sorted(list_names(store, _folder(branch), _PREFIX))
    going = [n for n in names if wanted.fullmatch(n) and not (spared is not None and spared.fullmatch(n))]
    for name in going:
        store.delete(f"{_folder(branch)}/{_PREFIX}{name}")
    return going


def expire_consumers(store: Store, before_ms: int, branch: str = MAIN_BRANCH) -> list[str]:
    """Forgets consumers that have not come on since a time (milliseconds since 1970 UTC); their names."""
    files = store.list_from(_folder(branch), _PREFIX)
    idle = [info.path for info in files if info.modified_ms < before_ms]
    for path in idle:
        store.delete(path)
    return [path.rpartition("/")[2].removeprefix(_PREFIX) for path in idle]


def _folder(branch: str) -> str:
    return "consumer" if branch == MAIN_BRANCH else f"branch/branch-{ensure_name(branch, 'branch')}/consumer"


def _read(store: Store, name: str, branch: str) -> Consumer | None:
    path = f"{_folder(branch)}/{_PREFIX}{name}"
    try:
        document = msgspec.json.decode(store.get(path), type=_Document)
    except NotFound:
        return None
    except DECODE_ERRORS as error:
        raise CorruptTable(
            f"the consumer cannot be read: {error}", code="invalid-consumer", path=path, hint="reset the consumer"
        ) from None
    return Consumer(name, document.next_snapshot)
