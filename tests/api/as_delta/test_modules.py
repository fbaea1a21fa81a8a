"""The modules of delta-spark, as a program imports them; each test in an interpreter of its own."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("pyspark")

from alluvium.api.as_delta.configure import configure_spark_with_delta_pip


def run(code: str, *path: str) -> str:
    """What a new interpreter prints."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "src")])}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def another_delta(tmp_path):
    """A package of that name that is found in the ordinary way."""
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").write_text("")
    (tmp_path / "delta" / "tables.py").write_text("DeltaTable = 'another'")
    (tmp_path / "delta" / "extra.py").write_text("")
    return str(tmp_path)


PROGRAM = """
import alluvium
alluvium.install_as_delta()
alluvium.install_as_delta()
from delta import DeltaTable, configure_spark_with_delta_pip
from delta.tables import DeltaTable as other, DeltaMergeBuilder, DeltaTableBuilder, DeltaOptimizeBuilder
from delta.tables import DeltaColumnBuilder, IdentityGenerator
from delta.exceptions import ConcurrentAppendException, MetadataChangedException
from delta.exceptions.captured import ConcurrentAppendException as captured
from delta.exceptions.base import ConcurrentAppendException as of_base
import delta.pip_utils, delta.version, delta.connect.tables, importlib.util
print(DeltaTable is other is alluvium.DeltaTable is delta.connect.tables.DeltaTable, DeltaTable.__module__)
print(ConcurrentAppendException is captured is of_base, delta.__version__, delta.tables.delta is delta)
print(importlib.util.find_spec("delta.tables").origin, importlib.reload(delta.tables).DeltaTable is DeltaTable)
for name in ("delta.extra", "delta.connect.proto"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error)

from delta.tables import *
from delta.exceptions import *
print(StructType.__name__, functions.__name__, ConcurrentWriteException.__name__, SparkSession.__name__)

builder = (SparkSession.builder.config("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.0,a:b:1")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension,x.Y").config("spark.ui.enabled", False)
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"))
same = configure_spark_with_delta_pip(builder, extra_packages=["c:d:2", "io.delta:delta-storage:4.0.0"])
print(same is builder, sorted(builder._options.items()))
print(configure_spark_with_delta_pip(SparkSession.builder)._options)
try:
    configure_spark_with_delta_pip(builder.getOrCreate)
except TypeError as error:
    print(type(error).__mro__[1].__name__, error.code)
"""


@pytest.mark.long
def test_every_module_stands_before_an_installed_one(another_delta):
    assert run(PROGRAM, another_delta).splitlines() == [
        "True alluvium.api.delta.delta_table",
        "True 4.4.0 True",
        "alluvium True",
        # Neither what is installed beside it nor what is not ours.
        "No module named 'delta.extra'",
        "No module named 'delta.connect.proto'",
        # Guides import all, and programs use what comes along.
        "StructType pyspark.sql.functions ConcurrentWriteException SparkSession",
        # A builder forgets the JAR, and nothing else.
        "True [('spark.jars.packages', 'a:b:1,c:d:2'), ('spark.sql.extensions', 'x.Y'), ('spark.ui.enabled', 'false')]",
        "{}",
        "InvalidRequest wrong-type",
    ]


@pytest.mark.long
def test_another_delta_that_was_imported_before_is_named(another_delta):
    printed = run(
        """
        import delta.tables
        import alluvium
        try:
            alluvium.install_as_delta()
        except alluvium.errors.InvalidRequest as error:
            print(error.code, error.hint)
            print(error.message)
        """,
        another_delta,
    )
    first, second = printed.splitlines()
    assert first == "delta-imported call alluvium.install_as_delta() before the first import of delta"
    assert another_delta in second


def test_without_installing_delta_is_whose_it_was(another_delta):
    printed = run("import alluvium; from delta.tables import DeltaTable; print(DeltaTable)", another_delta)
    assert printed.strip() == "another"


def test_the_arguments_are_those_of_delta_spark():
    assert list(inspect.signature(configure_spark_with_delta_pip).parameters) == [
        "spark_session_builder",
        "extra_packages",
    ]
