"""Partitions marked done: a file `_SUCCESS` in the folder of each.

Specification: `org.apache.paimon.partition.actions.SuccessFileMarkDoneAction`, `PartitionPathUtils`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.files.partitions import escape_path_name
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.life_options import MARK_DONE_ACTIONS
from alluvium.storage.store import Store

_MARK = "_SUCCESS"


def parse_partition(text: str, schema: TableSchema) -> dict[str, str]:
    """A partition as procedures take it: `"day=1,hour=2"`, leading keys at least.

    Raises:
        InvalidRequest: It is none of the table (`"invalid-partition"`).
    """
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    found = {key.strip(): value.strip() for key, equals, value in pairs if equals}
    keys = schema.partition_keys
    if len(found) != len(pairs) or not found or set(found) != set(keys[: len(found)]):
        raise InvalidRequest(
            f"{text!r} is no partition of the table",
            code="invalid-partition",
            hint=f"partition keys: {', '.join(keys) or 'none'}",
        )
    return found


def mark_partition_done(store: Store, schema: TableSchema, partition: Mapping[str, str]) -> str:
    """Marks a partition.

    Returns:
        The path of the mark.

    Raises:
        UnsupportedFeature: The table asks for more than a file (`"unsupported-option"`).
    """
    others = [action for action in MARK_DONE_ACTIONS.get(schema.options) if action != "success-file"]
    if others:
        raise UnsupportedFeature(
            f"partitions are marked by a file only, not by {', '.join(others)}",
            code="unsupported-option",
            features=(MARK_DONE_ACTIONS.key,),
            hint=f"{MARK_DONE_ACTIONS.key} = success-file",
        )
    keys = (key for key in schema.partition_keys if key in partition)
    folder = "/".join(f"{escape_path_name(key)}={escape_path_name(partition[key])}" for key in keys)
    path = f"{folder}/{_MARK}"
    now_ms = int(time.time() * 1000)
    created_ms = now_ms
    try:
        created_ms = int(json.loads(store.get(path))["creationTime"])
    except NotFound:
        created_ms = now_ms
    except (ValueError, KeyError, TypeError):
        # A mark of another engine, without times.
        created_ms = now_ms
    times = {"creationTime": created_ms, "modificationTime": now_ms}
    store.put(path, json.dumps(times, indent=2).encode())
    return path
