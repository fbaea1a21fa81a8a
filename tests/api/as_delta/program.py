"""A program written for delta-spark, JAR's settings and all; `install` is the two lines that are added to it.

Run by test_sessions.py in an interpreter of its own: before it the settings come from a builder (`builder`), or from
spark-defaults.conf, PYSPARK_SUBMIT_ARGS and a session that is there already (`existing`).
"""

import logging
import sys

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def install():
    import alluvium

    alluvium.install_as_delta()


def start(builder):
    return (
        builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", OPTIONS)
        .config("spark.sql.shuffle.partitions", "2")
    )


def built():
    """As the guides of delta-spark make a session."""
    install()
    from pyspark.sql import SparkSession

    from delta import configure_spark_with_delta_pip

    builder = (
        start(SparkSession.builder.appName("nightly"))
        .config("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.0")
        .config("spark.sql.extensions", EXTENSION)
        .config("spark.sql.catalog.spark_catalog", CATALOG)
    )
    return configure_spark_with_delta_pip(builder).getOrCreate()


def plainly_built():
    """As clusters are configured, without the function."""
    install()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    conf = SparkConf().setMaster("local[2]").setAppName("nightly").set("spark.ui.enabled", "false")
    conf.set("spark.driver.extraJavaOptions", OPTIONS).set("spark.sql.shuffle.partitions", "2")
    conf.set("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.0")
    conf.set("spark.sql.extensions", EXTENSION).set("spark.sql.catalog.spark_catalog", CATALOG)
    SparkContext(conf=conf)
    return SparkSession.builder.config("spark.sql.catalog.spark_catalog", CATALOG).getOrCreate()


def existing():
    """As in a notebook whose session is there before the first cell; see the settings of test_sessions.py."""
    from pyspark.sql import SparkSession

    spark = start(SparkSession.builder).getOrCreate()
    assert spark.conf.get("spark.sql.catalog.spark_catalog") == CATALOG
    install()
    return SparkSession.builder.config("spark.sql.catalog.spark_catalog", CATALOG).getOrCreate()


def work(spark, folder):
    """What the program does."""
    from delta.tables import DeltaTable
    from pyspark.sql import SparkSession

    path = folder + "/events"
    spark.range(6).selectExpr("id", "id % 2 day").write.format("delta").partitionBy("day").save(path)
    DeltaTable.forPath(spark, path).delete("id = 0")
    source = spark.sql("select 1L id, 9L day union all select 77L, 0L")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"day": "s.day"}).whenNotMatchedInsertAll().execute()
    print("rows", sorted(map(tuple, spark.read.format("delta").load(path).collect())))
    spark.range(2).write.format("delta").saveAsTable("named")
    print("named", spark.table("named").count(), DeltaTable.forName(spark, "named").history().count())
    spark.sql("drop table named")
    print("tables", spark.sql("show tables").count())
    spark.conf.set("spark.sql.catalog.spark_catalog", CATALOG)
    spark.sql(f"SET spark.sql.catalog.spark_catalog = {CATALOG}")
    told = []
    logging.getLogger("alluvium").addFilter(lambda record: told.append(record.getMessage()) or True)
    for n in (1, 2):
        spark.sql(f"set spark.databricks.delta.snapshotPartitions={n}")
    print("told", told, spark.conf.get("spark.databricks.delta.snapshotPartitions"))
    other = spark.newSession()
    print("other", other.read.format("delta").load(path).count(), other.sql("show databases").count())
    again = SparkSession.builder.config("spark.sql.catalog.spark_catalog", CATALOG).getOrCreate()
    print("again", again.range(1).count(), DeltaTable.isDeltaTable(again, path), again.sql("show tables").count())
    try:
        DeltaTable.forPath(spark, folder + "/nothing")
    except Exception as error:
        from pyspark.errors import AnalysisException

        print("error", isinstance(error, AnalysisException), error.getCondition())


if __name__ == "__main__":
    work({"built": built, "plain": plainly_built, "existing": existing}[sys.argv[1]](), sys.argv[2])
