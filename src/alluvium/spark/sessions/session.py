"""What a session can do, which lane follows from it, and its few facts that plans depend on."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.errors import InvalidRequest, suggest
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.storage.stores.hadoop import HadoopAccess

#: `native`: Spark's own readers, its planner asks us for files. `connect`: Spark's own readers on a server, by public
#: calls alone. `python`: our reader in Python workers.
Lane = Literal["native", "connect", "python"]
LANES: tuple[Lane, ...] = ("native", "connect", "python")
#: The formats of data files that Spark's own readers know, as they are named.
_READERS = {"parquet": "Parquet", "orc": "ORC"}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a session offers.

    Attributes:
        gateway: The driver's JVM is at hand (classic PySpark); false for Spark Connect.
        version: Spark's version as `(major, minor)`.
    """

    gateway: bool
    version: tuple[int, int]


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """The lane of one read, and why it is this one."""

    lane: Lane
    why: str


def why_native(formats: Iterable[str] = ("parquet",)) -> str:
    """Why a classic session takes its lane, which is the only one that it never needs to think about."""
    return f"a classic session: Spark's own {_readers(formats)} reader on the files that the log names"


def _why_connect(formats: Iterable[str] = ("parquet",)) -> str:
    return f"a Connect session: the server's own {_readers(formats)} reader on the files that the log names"


def _readers(formats: Iterable[str]) -> str:
    wanted = set(formats)
    return " and ".join(name for kind, name in _READERS.items() if kind in wanted)


def naming_readers(choice: LaneChoice, formats: Iterable[str]) -> LaneChoice:
    """The choice of a lane of Spark's own readers, once it is known which files they will read."""
    why = {"native": why_native, "connect": _why_connect}
    return replace(choice, why=why[choice.lane](formats)) if choice.lane in why else choice


def capabilities(spark: SparkSession) -> Capabilities:
    """What the session can do. A Connect session has no JVM gateway."""
    major, minor = spark.version.split(".")[:2]
    return Capabilities(isinstance(spark, SparkSession) and hasattr(spark, "_jsparkSession"), (int(major), int(minor)))


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a client of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def analysed(df: DataFrame) -> DataFrame:
    """The same; a query that Spark does not understand fails here. Over Connect that would be when it runs."""
    if is_connect(df.sparkSession):
        # The schema may be known without asking the server.
        df.isStreaming  # noqa: B018
    return df


def choose_lane(
    spark: SparkSession, asked: str | None = None, unreachable: Callable[[], str | None] = lambda: None
) -> LaneChoice:
    """Decides how this session reads a table.

    Args:
        spark: The session.
        asked: The lane that the user named, if any.
        unreachable: Why the server's own reader cannot read the table's files; None if it can. Asked only where the
            answer matters, since it asks the server.

    Raises:
        InvalidRequest: `"unknown-lane"`; `"lane-impossible"`: the session cannot take the lane that was asked for;
            `"no-jvm"`: the session has been stopped.
    """
    if asked is not None and asked not in LANES:
        raise InvalidRequest(f"there is no lane {asked!r}", code="unknown-lane", hint=suggest(asked, LANES))
    if asked == "python":
        return LaneChoice("python", "asked for: Alluvium's own reader in Spark's Python workers")
    own: Lane = "connect" if is_connect(spark) else "native"
    if asked is not None and asked != own:
        raise InvalidRequest(
            f"this session cannot take the lane {asked!r}: it is one of {'Connect' if own == 'connect' else 'a JVM'}",
            code="lane-impossible",
            hint=f'leave lane= out, or say lane="{own}" or lane="python"',
        )
    if own == "native":
        ensure_native(spark)
        return LaneChoice("native", why_native())
    problem = None if asked is not None else unreachable()
    if problem is not None:
        return LaneChoice("python", f"the server's own reader cannot read the files ({problem}): Python workers do")
    return LaneChoice("connect", _why_connect())


def ensure_native(spark: SparkSession) -> None:
    """Refuses sessions without a JVM gateway.

    Raises:
        InvalidRequest: `"no-jvm"`: the session is one of Spark Connect, or it has been stopped.
    """
    if not capabilities(spark).gateway:
        raise InvalidRequest(
            "this needs the JVM of a classic Spark session, and a Spark Connect session has none",
            code="no-jvm",
            hint="over Spark Connect tables are read, and rows written and changed; for the rest make the session with "
            "SparkSession.builder.master(...), or run the script with spark-submit",
        )
    if spark.sparkContext._jsc is None:
        raise InvalidRequest(
            "the Spark session has been stopped",
            code="no-jvm",
            hint="use the session that SparkSession.builder.getOrCreate() returns now",
        )


def default_parallelism(spark: SparkSession) -> int | None:
    """How many tasks run at once; None: over Connect nobody tells."""
    return None if is_connect(spark) else spark.sparkContext.defaultParallelism


def time_zone(spark: SparkSession) -> str:
    """The session's time zone, in which Spark reads and prints timestamps."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def hadoop_access(spark: SparkSession) -> HadoopAccess:
    """The JVM view and a Hadoop configuration with the session's settings, for `storage.stores.hadoop`.

    Raises:
        InvalidRequest: `"no-jvm"`.
    """
    ensure_native(spark)
    return HadoopAccess(java_of(spark).jvm, spark._jsparkSession.sessionState().newHadoopConf())


_catalogs: WeakKeyDictionary[SparkSession, JavaObject] = WeakKeyDictionary()


def session_catalog(spark: SparkSession) -> JavaObject:
    """The JVM's own catalog of a classic session, the same one as long as the session lives."""
    found = _catalogs.get(spark)
    if found is None:
        found = _catalogs[spark] = spark._jsparkSession.sessionState().catalog()
    return found


#: Schemas of the JVM by their JSON, the latest last: a query asks for the same few, and each takes its round trips.
_schemas: WeakKeyDictionary[JavaGateway, OrderedDict[str, JavaObject]] = WeakKeyDictionary()
_KEPT_SCHEMAS = 256
_changing = threading.Lock()


def java_schema(spark: SparkSession, schema: StructType) -> JavaObject:
    """The JVM's `StructType` of a schema, metadata included."""
    text = schema.json()
    with _changing:
        known = _schemas.setdefault(java_of(spark).gateway, OrderedDict())
        if text in known:
            known.move_to_end(text)
            return known[text]
    made = spark._jsparkSession.parseDataType(text)
    with _changing:
        known[text] = made
        while len(known) > _KEPT_SCHEMAS:
            known.popitem(last=False)
    return made
