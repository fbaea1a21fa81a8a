"""`write.merge-schema`: columns of rows that the table lacks are added to it before they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from alluvium.errors import InvalidRequest
from alluvium.paimon.log.schema_log import load_latest_schema, publish_next_schema
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.write.merge_columns import merge_columns
from alluvium.plan.retry import RetryPolicy
from alluvium.schema.types import Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.values.columns import Assignment
from alluvium.storage.store import Store

_MERGES, _EXPLICIT = "write.merge-schema", "write.merge-schema.explicit-cast"
#: Delta's name of the same option.
_ALIAS = "mergeSchema"
#: The options of a write.
MERGE_OPTIONS = (_ALIAS, _MERGES, _EXPLICIT)
#: What Paimon's options are called as settings of a session.
_SETTING = "spark.paimon."
MERGE_SETTING = f"{_SETTING}{_MERGES}"


@dataclass(frozen=True, slots=True)
class Merging:
    """What a write says of schemas.

    Attributes:
        is_asked: Whether the table's takes the rows' columns over.
        explicit: Whether its types may change to such that not all of their values fit.
    """

    is_asked: bool
    explicit: bool

    def assignment(self, spark: SparkSession) -> Assignment:
        """Which types of the rows go into the table's: merged, these are at least as wide."""
        return Assignment.CAST if self.is_asked and not is_connect(spark) else Assignment.EXACT


def parse_merging(options: Mapping[str, object], spark: SparkSession) -> Merging:
    """What options say, or else the session.

    Raises:
        InvalidRequest: Something that is neither true nor false (`"invalid-option"`).
    """
    said = {key.lower(): value for key, value in options.items()}
    asked = [_flag(name, said[name.lower()]) for name in (_ALIAS, _MERGES) if name.lower() in said]
    is_asked = any(asked) if asked else _flag(_MERGES, spark.conf.get(MERGE_SETTING, "false"))
    explicit = said.get(_EXPLICIT, spark.conf.get(f"{_SETTING}{_EXPLICIT}", "false"))
    return Merging(is_asked, is_asked and _flag(_EXPLICIT, explicit))


def merge_schema(df: DataFrame, store: Store, branch: str, merging: Merging, retry: RetryPolicy) -> bool:
    """Publishes the schema that has the rows' columns, too; whether there was anything to do.

    As in Java it stands before the rows are written, and stays if that fails: no row is in it yet.

    Raises:
        InvalidRequest: A column's type is neither as wide as the rows' nor may become so; nothing was changed.
    """
    data = from_spark(df.schema)
    assert isinstance(data, Struct), "rows have columns"
    newest = load_latest_schema(store, branch)
    assert newest is not None, "the table is there"
    if merge_columns(newest, data, merging.explicit) is newest:
        return False

    def evolve(before: TableSchema) -> TableSchema:
        merged = merge_columns(before, data, merging.explicit)
        # Another writer has just done the same: a version that changes nothing is none that anybody misses.
        return replace(before, id=before.id + 1) if merged is before else merged

    publish_next_schema(store, evolve, branch, retry)
    return True


def _flag(name: str, value: object) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise InvalidRequest(f"the option {name!r} must be true or false, not {value!r}", code="invalid-option")
    return text == "true"
