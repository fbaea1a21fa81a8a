"""The very state of a Paimon table as options of a data source, for workers that open it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, replace

import msgspec

from alluvium.api.options import parse_timestamp_ms
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.view.fallback import fallback_state
from alluvium.paimon.view.source import PaimonSource, View
from alluvium.storage.store import Store

#: JSON: branch, snapshot or tag, schema, the call's dynamic options, and the view.
_PIN = "alluviumPin"
_BRANCH, _POINTS = "branch", "scan."


class _Pin(msgspec.Struct, frozen=True):
    branch: str
    snapshot_id: int | None
    schema_id: int
    options: dict[str, str]
    tag: str | None = None
    view: tuple[str, int, int, str] = ("rows", 0, 0, "")
    fallback_id: int | None = None


def paimon_pins(source: PaimonSource) -> dict[str, str]:
    """Options that name the state that was opened."""
    snapshot = source.snapshot
    kept = ("scan.fallback-branch",)
    options = {k: v for k, v in snapshot.asked.items() if not k.startswith("scan.") or k in kept}
    tag = snapshot.asked.get("scan.tag-name")
    # Workers know the snapshot alone, not that it was the newest, with which the newest of the other branch goes.
    fallback = fallback_state(snapshot)
    fallback_id = None if fallback is None else fallback.version
    pin = _Pin(snapshot.branch, snapshot.version, snapshot.schema.id, options, tag, astuple(source.view), fallback_id)
    return {_PIN: msgspec.json.encode(pin).decode()}


def open_pinned(
    store: Store, given: Mapping[str, str], time_zone: str, open_any: Callable[[str], Store]
) -> PaimonSource:
    """The state that options name; the newest where they name none."""
    text = given.get(_PIN.lower())
    if text is None:
        asked = {name: value for name, value in given.items() if name == _BRANCH or name.startswith(_POINTS)}
        return PaimonSource(load_snapshot(store, _point(given, time_zone), MAIN_BRANCH, asked, time_zone, open_any))
    pin = msgspec.json.decode(text, type=_Pin)
    at = At(tag=pin.tag) if pin.tag else At(snapshot_id=pin.snapshot_id)
    snapshot = load_snapshot(store, at, pin.branch, pin.options, time_zone, open_any, pin.schema_id)
    return PaimonSource(replace(snapshot, fallback_id=pin.fallback_id), View(*pin.view))


def _point(given: Mapping[str, str], time_zone: str) -> At | None:
    """What `versionAsOf`, of a snapshot or a tag, or `timestampAsOf` names; None: neither is given."""
    version, timestamp = given.get("versionasof"), given.get("timestampasof")
    if version is not None:
        return At(version=version)
    return None if timestamp is None else At(timestamp_ms=parse_timestamp_ms(timestamp, zone=time_zone))
