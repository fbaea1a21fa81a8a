"""Store assignment: how Spark converts a value that goes into a table, whatever its session makes of casts elsewhere.

How a cast behaves is fixed when it is analysed. So a private session analyses the casts into a table's types, and the
user's session runs them; the user's own expressions are analysed in the user's session, before.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from alluvium.schema.types import DataType
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.naming.names import sql_type
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.sessions.clone import PrivateSession
from alluvium.spark.sessions.session import analysed, is_connect

_POLICY, _ANSI = "spark.sql.storeAssignmentPolicy", "spark.sql.ansi.enabled"


class StorePolicy(enum.Enum):
    """What `spark.sql.storeAssignmentPolicy` says.

    ANSI: a value that does not fit is an error of the job. The default.
    STRICT: types whose values might not fit are refused; the others cannot fail.
    LEGACY: a value that does not fit is wrapped or null.
    """

    ANSI = "ANSI"
    STRICT = "STRICT"
    LEGACY = "LEGACY"


def policy_of(spark: SparkSession) -> StorePolicy:
    """The session's policy."""
    return StorePolicy(str(spark.conf.get(_POLICY)).upper())


def who_forbids(policy: StorePolicy) -> str:
    """The setting that forbids casts which Spark has, as errors name it; empty: none does."""
    return f"{_POLICY} = STRICT" if policy is StorePolicy.STRICT else ""


def castable(spark: SparkSession, policy: StorePolicy) -> Callable[[DataType, DataType], bool]:
    """Whether a policy lets values of one type into columns of another, as far as Spark's analysis does not say it."""
    if policy is not StorePolicy.STRICT:
        return lambda source, target: True
    cast, parse = java_of(spark).cast, java_of(spark).type_of_text
    return lambda source, target: bool(cast.canUpCast(parse(sql_type(source)), parse(sql_type(target))))


def select_stored(df: DataFrame, texts: Sequence[str], policy: StorePolicy) -> DataFrame:
    """Columns over the data's, as Spark SQL; casts in them are those of the policy.

    Raises:
        AnalysisException: Spark has no such cast.
    """
    spark = df.sparkSession
    wanted = "false" if policy is StorePolicy.LEGACY else "true"
    is_plain = not any("cast(" in text for text in texts)
    if is_plain or is_connect(spark) or str(spark.conf.get(_ANSI)).lower() == wanted:
        return analysed(df.select(*map(sql_column, texts)))
    private = PrivateSession(spark, {_ANSI: wanted})
    return private.give_back(private.take(df).select(*map(sql_column, texts)))
