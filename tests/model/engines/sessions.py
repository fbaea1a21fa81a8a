"""Sessions of our own for the model, and all engines by name."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jvm
from pyspark.sql import SparkSession

import alluvium
from model.engines.python_engine import KNOWN as ANSWERS
from model.engines.python_engine import PythonEngine
from model.engines.reference import KNOWN, ReferenceEngine
from model.engines.spark_engine import DeltaSparkEngine, SparkEngine
from model.verbs.all_verbs import VERBS

if TYPE_CHECKING:
    from model.player import Engine

SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    **jvm.INTERPRETED,
}


#: What engines in processes of their own are asked to do.
VERBS_OF = {
    "delta-spark": frozenset(VERBS) - DeltaSparkEngine.NOT,
    "deltalake": frozenset(
        {"append", "overwrite", "delete", "update", "merge", "optimize", "vacuum", "restore", "checkpoint"}
    ),
    "connect": frozenset(
        {
            "append",
            "overwrite",
            "replace_where",
            "dynamic_overwrite",
            "delete",
            "update",
            "merge",
            "append_wider",
            "overwrite_wider",
            "merge_wider",
            "restore",
            "vacuum",
            "optimize",
            "z_order",
            "purge",
            "drop_constraint",
            "drop_feature",
            "cluster_by",
        }
    ),
}


def classic_session() -> SparkSession:
    """A small one, for tables of a few rows."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    source = str(Path(alluvium.__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in (source, os.environ.get("PYTHONPATH")) if p)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", jvm.OPTIONS).config(
        "spark.buffer.pageSize", jvm.PAGE_BYTES
    )
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.driver.memory", "1g")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    jvm.lighten(session.sparkContext)
    return session


def spark_engines(spark: SparkSession) -> dict[str, Engine]:
    """Alluvium in a classic session: by DataFrames and `DeltaTable`, and by SQL."""
    alluvium.enable(spark)
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    made = (SparkEngine(n, spark, alluvium, sql, ANSWERS) for n, sql in (("spark", False), ("spark-sql", True)))
    return {engine.name: engine for engine in made}


def engines_named(names: list[str]) -> dict[str, Engine]:
    """Engines, each started."""
    found: dict[str, Engine] = {}
    for name in names:
        if name == "python":
            found[name] = PythonEngine()
        elif name == "spark":
            found |= spark_engines(classic_session())
        else:
            found[name] = ReferenceEngine(name, VERBS_OF[name], KNOWN[name])
    return found
