"""Iceberg tables that are to become Delta tables: where their newest state stands.

pyiceberg reads it (`iceberg_state`), and is loaded by those alone who convert such a table.
Specification: https://iceberg.apache.org/spec/, "File System Tables" for the hint.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.plan.scan import ScanPlan
from alluvium.storage.store import Store

NAME = "iceberg"
_FOLDER, _SUFFIX, _HINT = "metadata", ".metadata.json", "metadata/version-hint.text"
#: States of tables without a catalog; between the number and the end may stand how they are packed.
_NUMBERED = re.compile(r"v(\d+)(?:\.\w+)?\.metadata\.json", re.ASCII)
_STATE = "alluvium.delta.upkeep.convert.iceberg_state"
_IN_METADATA = re.compile(r"(?P<root>.*)/metadata/(?P<name>[^/]+\.metadata\.json)")


def split_metadata(path: str) -> tuple[str, str | None]:
    """A table's folder, and which file says its state: the path may name that file."""
    found = _IN_METADATA.fullmatch(path)
    return (path, None) if found is None else (found["root"], found["name"])


def iceberg_plan(store: Store, name: str | None = None) -> ScanPlan | None:
    """By what the newest state of an Iceberg table is read; None: there is no such table.

    Args:
        store: The table's folder.
        name: The file in `metadata/` that its catalog names; None: the folder says it.

    Raises:
        InvalidRequest: The folder does not say which state is the newest, for a catalog knows (`ambiguous-state`), or
            its files cannot be a Delta table's (`not-convertible`).
        UnsupportedFeature: A type that no Delta table has; or pyiceberg is missing (`missing-dependency`).
        CorruptTable: What pyiceberg cannot read (`damaged-iceberg`).
    """
    infos = store.list_from(_FOLDER)
    names = [found for info in infos if (found := info.path.rpartition("/")[2]).endswith(_SUFFIX)]
    if not names:
        return None
    plan: ScanPlan = _library().plan_of(store, f"{_FOLDER}/{_newest(store, names) if name is None else name}")
    return plan


def _newest(store: Store, names: list[str]) -> str:
    if any(info.path == _HINT for info in store.list_from(_FOLDER, "version-hint.text")):
        text = store.get(_HINT).decode("utf-8", "replace").strip()
        if not text.isdigit():
            return text if text.endswith(_SUFFIX) else f"{text}{_SUFFIX}"
        number = int(text)
        numbered = {int(found[1]): found[0] for name in names if (found := _NUMBERED.fullmatch(name))}
        # The hint is written after the state: it may be behind.
        while number + 1 in numbered:
            number += 1
        if len(numbered) == len(names):
            return numbered.get(number, f"v{number}{_SUFFIX}")
        # A catalog has taken the table over, and writes no hints.
    elif len(names) == 1:
        return names[0]
    raise InvalidRequest(
        f"{len(names)} files say states of the Iceberg table, and only its catalog knows which is the newest",
        code="ambiguous-state",
        url=store.url,
        hint=f"name the file that the catalog names: iceberg.`{store.url}/{_FOLDER}/{names[-1]}`",
    )


def _library() -> Any:
    try:
        return importlib.import_module(_STATE)
    except ModuleNotFoundError as error:
        raise UnsupportedFeature(
            f"Iceberg tables are read by pyiceberg: {error}",
            code="missing-dependency",
            features=(NAME,),
            hint="pip install alluvium[iceberg]",
        ) from None
