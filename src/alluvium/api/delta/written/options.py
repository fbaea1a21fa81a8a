"""What the options of a writer say of a write; Spark or not."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from alluvium.api.options import Options, parse_version
from alluvium.delta.terms.properties import parse_columns
from alluvium.delta.terms.sort_order import SORT_BY, parse_sort
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Operation
from alluvium.schema.types import JsonValue, Struct

#: As Java reads one.
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def ensure_whole(parsed: Options, partition_columns: Sequence[str]) -> None:
    """What is left of the table would not fit a schema that was overwritten.

    Raises:
        InvalidRequest: `"contradicting-options"`.
    """
    partial_overwrite = "replaceWhere" if parsed.get("replaceWhere") is not None else None
    if is_dynamic(parsed) and partition_columns:
        partial_overwrite = "partitionOverwriteMode"
    if partial_overwrite is not None:
        raise InvalidRequest(
            f"overwriteSchema overwrites the whole table, {partial_overwrite} only a part of it",
            code="contradicting-options",
            hint="mergeSchema adds new columns while a part is replaced",
        )


def is_dynamic(parsed: Options) -> bool:
    """Whether exactly the partitions that rows are in are overwritten.

    Raises:
        InvalidRequest: The mode is neither static nor dynamic (`invalid-option`).
    """
    text = parsed.get("partitionOverwriteMode")
    if text is None or text.lower() == "static":
        return False
    if text.lower() != "dynamic":
        raise InvalidRequest(f"partitionOverwriteMode must be static or dynamic, not {text!r}", code="invalid-option")
    return True


def parse_data_change(parsed: Options, save_mode: str, target: DeltaTarget) -> bool:
    """False where the rows are said to be those that they replace.

    Raises:
        InvalidRequest: There is nothing that they could replace (`data-changed`), or the schema changes with them
            (`contradicting-options`).
    """
    if parsed.flag("dataChange", "true"):
        return True
    if target.snapshot is None or save_mode != "Overwrite":
        raise InvalidRequest(
            "the option dataChange=false is for an overwrite that only rearranges rows, not for new rows",
            code="data-changed",
            hint='say mode="overwrite", or leave dataChange out',
        )
    if target.config is not target.snapshot.config:
        raise InvalidRequest(
            "an overwrite with dataChange=false cannot change the schema or the partitioning",
            code="contradicting-options",
            hint="leave mergeSchema and overwriteSchema out",
        )
    return False


def parse_rebalance(parsed: Options) -> bool | None:
    """What is said of optimized writes; None: nothing, so that the table decides."""
    return None if parsed.get("optimizeWrite") is None else parsed.flag("optimizeWrite")


def parse_sort_by(parsed: Options, schema: Struct) -> tuple[str, ...] | None:
    """By which columns rows are sorted within files; None: nothing is said, so that the table decides.

    Raises:
        InvalidRequest: `"invalid-sort-column"`.
    """
    text = parsed.get("sort_by")
    return None if text is None else parse_sort(text, schema)


def sorted_as(parsed: Options) -> dict[str, str]:
    """The property of a table to create that makes it stay sorted."""
    text = parsed.get("sort_by")
    return {} if text is None else {SORT_BY: text}


def parse_clusters(parsed: Options) -> tuple[str, ...]:
    """Columns by which a table to create is clustered, dotted when nested."""
    return parse_columns(parsed.get("clusterBy") or "")


def parse_txn(parsed: Options) -> tuple[str, int] | None:
    """The application's id and version.

    Raises:
        InvalidRequest: `"contradicting-options"`: one without the other.
    """
    app_id, version = parsed.get("txnAppId"), parsed.get("txnVersion")
    if (app_id is None) != (version is None):
        raise InvalidRequest("txnAppId and txnVersion go together", code="contradicting-options")
    return None if app_id is None else (app_id, parse_version(version, "txnVersion"))


def engine_options(parsed: Options) -> tuple[tuple[str, str], ...]:
    """Options for the writer of the Parquet files.

    Raises:
        InvalidRequest: `maxRecordsPerFile` is no whole number (`invalid-option`).
    """
    most = parsed.get("maxRecordsPerFile")
    if most is not None and _WHOLE.fullmatch(most) is None:
        raise InvalidRequest(
            f"the option 'maxRecordsPerFile' must be a whole number, not {most!r}",
            code="invalid-option",
            hint="0 sets no limit",
        )
    own = {name: parsed.known[name] for name in ("compression", "maxRecordsPerFile") if name in parsed.known}
    return tuple({**parsed.engine, **own}.items())


def write_operation(engine: str, save_mode: str, names: Sequence[str], parsed: Options) -> Operation:
    """A WRITE as the history shows it, and who does it."""
    parameters: dict[str, JsonValue] = {"mode": save_mode, "partitionBy": msgspec.json.encode(list(names)).decode()}
    if parsed.get("replaceWhere") is not None:
        parameters["predicate"] = parsed.get("replaceWhere")
    if (columns := parsed.get("replaceUsing")) is not None:
        parameters["replaceUsingCols"] = f"({columns})"
    if (condition := parsed.get("replaceOn")) is not None:
        parameters["replaceOnCond"] = condition
    if save_mode == "Overwrite" and is_dynamic(parsed) and columns is condition is None:
        parameters["isDynamicPartitionOverwrite"] = True
    if parsed.flag("overwriteSchema") and save_mode == "Overwrite":
        parameters["canOverwriteSchema"] = True
    if parsed.flag("mergeSchema"):
        parameters["canMergeSchema"] = True
    # An append replaces nothing, whatever it says; the reference's history tells of both.
    idle = save_mode == "Append" and parsed.get("replaceWhere") is not None
    metrics = {"numCopiedRows": "0", "numAddedChangeFiles": "0"} if idle else {}
    return Operation("WRITE", parameters, metrics, engine, parsed.get("userMetadata"))


def parse_description(parsed: Options) -> dict[str, str]:
    """What a table to create says of itself: the option `description`, or `comment`, as the property of that name."""
    text = parsed.get("description") or parsed.get("comment")
    return {} if text is None else {"comment": text}
