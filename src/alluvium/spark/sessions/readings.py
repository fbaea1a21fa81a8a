"""Settings by which a session reads the text of a condition: what it means is theirs to say."""

from __future__ import annotations

from pyspark.sql import SparkSession

from alluvium.spark.sessions.session import time_zone

ZONE = "spark.sql.session.timeZone"
#: What each setting is where Spark reads a text as we do.
_USUAL: dict[str, tuple[str, ...]] = {
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.caseSensitive": ("false",),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("false",),
    "spark.sql.parser.escapedStringLiterals": ("false",),
    "spark.sql.legacy.timeParserPolicy": ("corrected", "exception"),
    "spark.sql.timestampType": ("timestamp_ltz",),
}


def reading_zone(spark: SparkSession) -> str | None:
    """The zone in which the session reads texts; None where its settings make other things of them than we do."""
    # All at once: over Connect each question is a round trip.
    said = spark.conf.getAll
    if not all(name not in said or said[name].casefold() in usual for name, usual in _USUAL.items()):
        return None
    return said.get(ZONE) or time_zone(spark)
