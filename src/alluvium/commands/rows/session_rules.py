"""What settings of the session, under the reference's names, say of changing rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pyspark.sql import SparkSession

from alluvium.spark.sessions.session import is_connect
from alluvium.spark.sessions.settings import read_flag
from alluvium.spark.values.storing import StorePolicy, policy_of

#: Whether a verb may mark rows as deleted where the table allows it.
_MASKS: Mapping[str, str] = {
    "DELETE": "spark.databricks.delta.delete.deletionVectors.persistent",
    "MERGE": "spark.databricks.delta.merge.deletionVectors.persistent",
    "UPDATE": "spark.databricks.delta.update.deletionVectors.persistent",
}
#: Whether casts of UPDATE and MERGE are the session's own, whatever the policy of store assignment is.
_CASTS_AS_ELSEWHERE = "spark.databricks.delta.updateAndMergeCastingFollowsAnsiEnabledFlag"


def may_mask(spark: SparkSession, verb: Literal["DELETE", "MERGE", "UPDATE"]) -> bool:
    """Whether a verb may add deletion vectors, as far as the session says it.

    Raises:
        InvalidRequest: The setting is neither true nor false (`invalid-setting`).
    """
    return read_flag(spark, _MASKS[verb], True)


def change_policy(spark: SparkSession) -> StorePolicy:
    """What becomes of values that do not fit their column in a statement UPDATE, or in a MERGE.

    Raises:
        InvalidRequest: A setting is neither true nor false (`invalid-setting`).
    """
    # Only a JVM knows what STRICT allows.
    if is_connect(spark):
        return StorePolicy.ANSI
    if not read_flag(spark, _CASTS_AS_ELSEWHERE, False):
        return policy_of(spark)
    is_ansi = str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"
    return StorePolicy.ANSI if is_ansi else StorePolicy.LEGACY
