"""Methods of `delta.tables.DeltaTable` that are about Spark: refused by their names where there is no session."""

from __future__ import annotations

from typing import NoReturn

from alluvium.errors import UnsupportedFeature

_BUILDERS = 'alluvium.write(data, url, partition_by=..., **{"delta.appendOnly": "true"}) makes a table without Spark'


class SparkVerbs:
    """What needs a session, and what to do instead."""

    __slots__ = ()

    def toDF(self) -> NoReturn:
        """Refused: there are DataFrames in sessions alone.

        Raises:
            UnsupportedFeature: Always (`needs-spark`).
        """
        raise _refused("toDF", "toTable().to_arrow() has the rows; to_polars(), to_pandas(), to_duckdb() show them")

    @classmethod
    def forName(cls, *args: object, **named: object) -> NoReturn:
        """Refused: names are those of a session's catalog.

        Raises:
            UnsupportedFeature: Always (`needs-spark`).
        """
        raise _refused("forName", "DeltaTable.forPath(path), or DeltaTable.forName(spark, name)")

    @classmethod
    def create(cls, *args: object, **named: object) -> NoReturn:
        """Refused: tables are built by a session.

        Raises:
            UnsupportedFeature: Always (`needs-spark`).
        """
        raise _refused("create", _BUILDERS)

    @classmethod
    def createIfNotExists(cls, *args: object, **named: object) -> NoReturn:
        """Refused as `create`."""
        raise _refused("createIfNotExists", _BUILDERS)

    @classmethod
    def replace(cls, *args: object, **named: object) -> NoReturn:
        """Refused as `create`."""
        raise _refused("replace", 'alluvium.write(data, url, mode="overwrite", overwriteSchema="true")')

    @classmethod
    def createOrReplace(cls, *args: object, **named: object) -> NoReturn:
        """Refused as `create`."""
        raise _refused("createOrReplace", 'alluvium.write(data, url, mode="overwrite", overwriteSchema="true")')

    @classmethod
    def columnBuilder(cls, *args: object, **named: object) -> NoReturn:
        """Refused as `create`."""
        raise _refused("columnBuilder", _BUILDERS)


def _refused(method: str, hint: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"DeltaTable.{method} needs a session", code="needs-spark", hint=hint)
