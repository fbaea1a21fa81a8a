"""The very state of a Paimon table as options of a data source, for workers that open it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, replace

import msgspec

from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.view.fallback import fallback_state
from alluvium.paimon.view.source import PaimonSource, View
from alluvium.storage.store import Store

#: JSON: branch, snapshot or tag, schema, the call's dynamic options, and the view.
_PIN = "alluviumPin"


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
    text = given.get(_PIN.casefold())
    if text is None:
        version = given.get("versionasof")
        at = None if version is None else At(version=version)
        return PaimonSource(load_snapshot(store, at, MAIN_BRANCH, None, time_zone, open_any))
    pin = msgspec.json.decode(text, type=_Pin)
    at = At(tag=pin.tag) if pin.tag else At(snapshot_id=pin.snapshot_id)
    snapshot = load_snapshot(store, at, pin.branch, pin.options, time_zone, open_any, pin.schema_id)
    return PaimonSource(replace(snapshot, fallback_id=pin.fallback_id), View(*pin.view))
