"""What a CREATE TABLE says beside its columns: format, place, partitioning, properties, options, constraints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from alluvium.api.delta.delta_access import PROVIDER
from alluvium.api.sql.call import Call, some
from alluvium.delta.terms.properties import CONSTRAINT_PREFIX
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.sessions.catalog import quoted_name

_PLAIN = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Said:
    """The clauses of a statement.

    Attributes:
        location: Of LOCATION, or of the option `path`.
        comment: Of COMMENT.
        properties: Of TBLPROPERTIES.
        options: Of OPTIONS, but for the path.
        partition_by: Of PARTITIONED BY.
        cluster_by: Of CLUSTER BY, dotted when nested.
        checks: Conditions of CHECK constraints by their names.
    """

    location: str | None = None
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    checks: dict[str, str] = field(default_factory=dict)


def makes_ours(call: Call, provider: JavaObject | None, serde: JavaObject | None) -> bool:
    """Whether a statement with this USING, or none, and this STORED AS makes a table of ours."""
    if provider is not None:
        return str(provider).lower() == PROVIDER
    conf = call.spark.conf
    makes_hive = str(conf.get("spark.sql.legacy.createHiveTableByDefault", "false")).lower() == "true"
    return serde is None and not makes_hive and str(conf.get("spark.sql.sources.default")).lower() == PROVIDER


def said_of(call: Call, partitioning: JavaObject) -> Said:
    """The clauses of a CREATE or REPLACE TABLE.

    Raises:
        UnsupportedFeature: Partitioning by more than columns, buckets, keys.
    """
    spec = call.plan.tableSpec()
    partition_by, cluster_by = _layout(partitioning)
    location, comment = some(spec.location()), some(spec.comment())
    return Said(
        location=None if location is None else str(location),
        comment=None if comment is None else str(comment),
        properties=texts_of(call, spec.properties()),
        options=_options(call, spec.optionExpression().options()),
        partition_by=partition_by,
        cluster_by=cluster_by,
        checks=_checks(spec),
    )


def texts_of(call: Call, scala_map: JavaObject) -> dict[str, str]:
    """A Scala map of texts."""
    converters = call.java.jvm.scala.jdk.javaapi.CollectionConverters
    return {str(key): str(value) for key, value in dict(converters.asJava(scala_map)).items()}


def _layout(partitioning: JavaObject) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The partition columns and the clustering columns."""
    partition_by: list[str] = []
    cluster_by: list[str] = []
    for n in range(partitioning.size()):
        transform = partitioning.apply(n)
        name = str(transform.name())
        paths = [tuple(str(part) for part in reference.fieldNames()) for reference in transform.references()]
        if name == "cluster_by":
            cluster_by += map(_dotted, paths)
        elif name == "identity" and len(paths[0]) == 1:
            partition_by.append(paths[0][0])
        else:
            what = "bucketing" if name in ("bucket", "sorted_bucket") else f"partitioning by {transform.toString()}"
            raise UnsupportedFeature(
                f"{what} is not a thing of Delta tables",
                code="unsupported-partitioning",
                features=(name,),
                hint="partition by a generated column: b DATE GENERATED ALWAYS AS (CAST(a AS DATE)); or CLUSTER BY",
            )
    return tuple(partition_by), tuple(cluster_by)


def _dotted(path: Iterable[str]) -> str:
    parts = tuple(path)
    return ".".join(parts) if all(map(_PLAIN.fullmatch, parts)) else quoted_name(parts)


def _options(call: Call, options: JavaObject) -> dict[str, str]:
    """The options; values may be any constant expression."""
    pairs = [options.apply(n) for n in range(options.size())]
    if not pairs:
        return {}
    values = call.run("select 1").select(*[call.column(pair._2()).cast("string") for pair in pairs]).head()
    assert values is not None
    found = {str(pair._1()): value for pair, value in zip(pairs, values, strict=True)}
    return {name: value for name, value in found.items() if value is not None}


def _checks(spec: JavaObject) -> dict[str, str]:
    """CHECK constraints, which Spark's parser knows from 4.1 on."""
    if "constraints" not in str(spec.productElementNames().mkString(" ")).split(" "):
        return {}
    found: dict[str, str] = {}
    constraints = spec.constraints()
    for n in range(constraints.size()):
        constraint = constraints.apply(n)
        if str(constraint.getClass().getSimpleName()) != "CheckConstraint":
            raise UnsupportedFeature(
                "keys are not a thing of Delta tables",
                code="unsupported-constraint",
                features=("primary key, unique, foreign key",),
                hint="leave them out: nobody would check them",
            )
        given = constraint.userProvidedName()
        name = f"check_{n + 1}" if given is None else str(given)
        if CONSTRAINT_PREFIX + name.lower() in found:
            raise InvalidRequest(f"the constraint {name!r} stands twice", code="constraint-exists")
        found[CONSTRAINT_PREFIX + name.lower()] = str(constraint.condition())
    return found
