"""Rows of which somebody observes how many there are, written in each way that tables have files written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf

import alluvium
from alluvium.errors import InvalidRequest
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type

#: Spark's own writer has no form for days of the old calendar in ORC.
OLD, NEW = "1000-01-01", "2000-01-01"


def observed(spark: Any, day: str) -> tuple[DataFrame, Observation]:
    found = Observation()
    rows = spark.sql(f"select cast(id as int) k, if(id = 7, date'{day}', date'{NEW}') c from range(10)")
    return rows.observe(found, sf.count(sf.lit(1)).alias("n"), sf.max("k").alias("last")), found


def told(found: Observation) -> dict[str, Any] | None:
    """What was observed; None: nobody tells."""
    answers: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: answers.append(found.get), daemon=True)
    waiting.start()
    waiting.join(20)
    return answers[0] if answers else None


def _paimon(url: str, file_format: str) -> None:
    fields = [DataField(0, "k", parse_type("INT")), DataField(1, "c", parse_type("DATE"))]
    PaimonTable.create(url, fields, (), options={"file.format": file_format})


def _delta(spark: Any, url: str, rows: DataFrame) -> None:
    alluvium.write(rows, url)


def _replaced(spark: Any, url: str, rows: DataFrame) -> None:
    alluvium.write(spark.sql(f"select 3 k, date'{NEW}' c"), url)
    alluvium.write(rows, url, mode="overwrite", replaceWhere="k >= 0")


def _refused(spark: Any, url: str, rows: DataFrame) -> None:
    """A job that fails has been observed, too, as far as it came."""
    alluvium.write(spark.sql(f"select 3 k, date'{NEW}' c"), url)
    try:
        alluvium.write(rows, url, mode="overwrite", replaceWhere="k < 5")
    except InvalidRequest as error:
        assert error.code == "constraint-violated"


def _parquet(spark: Any, url: str, rows: DataFrame) -> None:
    _paimon(url, "parquet")
    alluvium.write(rows, url, mode="append", format="paimon")


def _orc(spark: Any, url: str, rows: DataFrame) -> None:
    _paimon(url, "orc")
    alluvium.write(rows, url, mode="append", format="paimon")


def _avro(spark: Any, url: str, rows: DataFrame) -> None:
    _paimon(url, "avro")
    alluvium.write(rows, url, mode="append", format="paimon")


Way = Callable[[Any, str, DataFrame], None]
WAYS: dict[str, tuple[Way, str]] = {
    "delta": (_delta, NEW), "replaced": (_replaced, NEW), "parquet": (_parquet, NEW), "orc": (_orc, NEW),
    "orc-by-workers": (_orc, OLD), "avro": (_avro, NEW),
}  # fmt: skip


def play(spark: Any, folder: Path, way: tuple[Way, str]) -> None:
    write, day = way
    rows, found = observed(spark, day)
    write(spark, str(folder / "t"), rows)
    assert told(found) == {"n": 10, "last": 9}


def play_refused(spark: Any, folder: Path) -> None:
    rows, found = observed(spark, NEW)
    _refused(spark, str(folder / "t"), rows)
    assert told(found) is not None
