"""What is left of Spark's settings without Delta's JAR: everything of others."""

from __future__ import annotations

import pytest

from alluvium.api.as_delta.settings import left_of, submit_args_without_jar, without_jar

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.0", None),
        ("spark.jars.packages", "io.delta:delta-core_2.12:1.0.0,a:b:1", "a:b:1"),
        ("spark.jars.packages", "a:b:1, io.delta:delta-storage-s3-dynamodb:4.0.0 ,c:d:2", "a:b:1,c:d:2"),
        ("spark.jars.packages", "io.delta:delta-sharing-spark_2.13:1.3.3", "io.delta:delta-sharing-spark_2.13:1.3.3"),
        ("spark.jars.packages", "a:b:1, c:d:2", "a:b:1, c:d:2"),
        ("spark.jars", "/x/delta-spark_2.13-4.0.0.jar,s3://y/delta-storage-4.0.0.jar,/z/delta-lookup.jar", "/z/delta-lookup.jar"),
        ("spark.sql.extensions", EXTENSION, None),
        ("spark.sql.extensions", f"org.apache.sedona.sql.SedonaSqlExtensions,{EXTENSION}", "org.apache.sedona.sql.SedonaSqlExtensions"),
        ("spark.sql.catalog.spark_catalog", CATALOG, None),
        ("spark.sql.catalog.spark_catalog", "org.apache.iceberg.spark.SparkSessionCatalog", "org.apache.iceberg.spark.SparkSessionCatalog"),
        ("spark.sql.catalog.lake", CATALOG, None),
        ("spark.sql.catalog.lake.uri", CATALOG, CATALOG),
        ("spark.connect.extensions.command.classes", "org.apache.spark.sql.connect.delta.DeltaCommandPlugin", None),
        ("spark.app.name", "io.delta:delta-spark_2.13:4.0.0", "io.delta:delta-spark_2.13:4.0.0"),
        ("spark.databricks.delta.schema.autoMerge.enabled", "true", "true"),
    ],
)  # fmt: skip
def test_what_is_left_of_a_setting(name, value, left):
    assert left_of(name, value) == left


def test_values_that_are_no_text_stay_what_they_are():
    said = {"spark.ui.enabled": False, "spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0", "n": 1}
    assert without_jar(said) == {"spark.ui.enabled": False, "n": 1}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("pyspark-shell", "pyspark-shell"),
        ("--packages io.delta:delta-core_2.12:1.0.0 pyspark-shell", "pyspark-shell"),
        ("--packages=io.delta:delta-core_2.12:1.0.0,a:b:1 pyspark-shell", "--packages a:b:1 pyspark-shell"),
        (f"--conf spark.sql.extensions={EXTENSION} --master local[2] pyspark-shell", "--master 'local[2]' pyspark-shell"),
        (f"-c spark.sql.catalog.spark_catalog={CATALOG} -c spark.x='a b' pyspark-shell", "-c 'spark.x=a b' pyspark-shell"),
        ("--conf spark.driver.extraJavaOptions=-Da=b pyspark-shell", "--conf spark.driver.extraJavaOptions=-Da=b pyspark-shell"),
        ("--jars /a/delta-spark_2.13-4.0.0.jar,/b/c.jar pyspark-shell", "--jars /b/c.jar pyspark-shell"),
    ],
)  # fmt: skip
def test_what_is_left_of_the_arguments_of_spark_submit(text, left):
    assert submit_args_without_jar(text) == left
