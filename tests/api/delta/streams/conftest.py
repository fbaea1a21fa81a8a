"""Streams of one enabled session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import alluvium

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Streams:
    """Copies tables by streams; each call of `copy` is a run that reads what there is, then ends."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def append(self, name: str, start: int, end: int, files: int = 1, **options: Any) -> None:
        alluvium.write(self.spark.range(start, end).repartition(files), self.path(name), mode="append", **options)

    def read(self, name: str, **options: Any) -> DataFrame:
        return self.spark.readStream.format("delta").options(**options).load(self.path(name))

    def into(self, df: DataFrame, name: str, mode: str = "append", **options: Any) -> StreamingQuery:
        """Started; what is read now is read."""
        options.setdefault("checkpointLocation", self.path(f"{name}-checkpoint"))
        writer = df.writeStream.format("delta").outputMode(mode).options(**options)
        return writer.trigger(availableNow=True).start(self.path(name))

    def copy(self, source: str, target: str, **options: Any) -> StreamingQuery:
        query = self.into(self.read(source, **options), target)
        query.awaitTermination()
        return query

    def ids(self, name: str) -> list[int]:
        return sorted(alluvium.open(self.path(name)).to_arrow()["id"].to_pylist())

    def offsets(self, name: str) -> list[str]:
        """The last line of each offset of a checkpoint, in order."""
        folder = self.folder / f"{name}-checkpoint" / "offsets"
        files = sorted((f for f in folder.iterdir() if f.name.isdigit()), key=lambda f: int(f.name))
        return [f.read_text().splitlines()[-1] for f in files]


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Iterator[Streams]:
    alluvium.enable(spark)
    yield Streams(spark, tmp_path)
    for query in spark.streams.active:
        query.stop()
    alluvium.disable(spark)
