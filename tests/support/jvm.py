"""How tests start a JVM, each of them. No imports of the project: the reference engine's Python reads it, too."""

from contextlib import contextmanager

from local_files import start_no_processes

#: One thread that collects and one compiler: the others are the neighbour's. Two modules side by side took 222 s each
#: without the second compiler, 266 s with it. What the first has compiled fills 48 MB, all that it is given then, in
#: four minutes; from there on a JVM throws away and compiles anew what it runs. To look for what is compiled and no longer
#: needed takes 4 % of all time; there is room for it.
OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=1g -XX:-UseCodeCacheFlushing "
    "-XX:-MethodFlushing"
)

#: What each aggregate, sort and join of a task takes and clears first; Spark derives 32 MB from the heap. A module of
#: merges spent 12.7 s collecting them, and 3.7 s with this.
PAGE_BYTES = "1m"

#: Rows go from operator to operator: for tables of a few rows whole stages are not worth compiling.
BY_OPERATORS = {"spark.sql.codegen.wholeStage": "false"}

#: Where two engines are compared nothing is compiled at all: a tenth of the time. Spark's catalog lists no tables then.
INTERPRETED = {**BY_OPERATORS, "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

#: How delta-spark writes its log where no other process writes beside it: its other ways to rename start ten processes
#: a commit (`readlink`, `chmod`), 7 ms each.
ALONE = {
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


#: Before each operation of a column PySpark asks its JVM seven times, for what line of the program an error is to name:
#: 1.9 ms, and 0.3 without.
NO_CALL_SITES = {"spark.python.sql.dataFrameDebugging.enabled": "false"}


def settings(version: str) -> dict[str, str]:
    """Settings of the tests' own session by Spark's version: the newest compiles whole stages, but for what users see
    (tests/api), the oldest does not. So both ways are played.
    """
    return {**(BY_OPERATORS if version.startswith("4.0.") else {}), **NO_CALL_SITES}


@contextmanager
def having(spark, settings):
    """Within it a session has other settings."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


#: What Spark itself puts there.
_SPARKS = (
    "io.file.buffer.size",
    "fs.s3a.downgrade.syncable.exceptions",
    "mapreduce.fileoutputcommitter.algorithm.version",
)
#: What Hadoop's code has no default of its own for: by it `FileContext` finds file systems.
_NEEDED = r"^(fs\.AbstractFileSystem\..*|fs\.defaultFS)$"
#: What PySpark, delta-spark and tests ask their view of the JVM for.
_NAMES = (
    "java",
    "org",
    "scala",
    "io",
    # For each error, twenty times: of what class it is.
    "py4j",
    "PythonUtils",
    "PythonSQLUtils",
    "PythonRDD",
    "SerDeUtil",
    "SimplePythonFunction",
)


def lighten(context) -> None:
    """Takes from a context what costs each job, each file and each call, and is of no use for small tables.

    - The defaults of what it calls Hadoop's configuration, 1,080 of 1,100 entries, most of them YARN's: Spark sends all
      of them with each job, in five or six copies that are written and read entry by entry, a fifth of the JVM's time.
      Hadoop's code has the same defaults.
    - The question what the first part of a name is (`jvm.java`): for each the JVM looks in every package that PySpark
      imports, archive by archive.
    - Processes (`local_files.py`).

    Args:
        context: A `SparkContext` whose JVM is this process's.
    """
    java, configuration = context._jvm, context._jsc.hadoopConfiguration()
    # Whose classes are loaded later has its defaults read then, and all others with them.
    java.org.apache.hadoop.mapred.JobConf()
    java.org.apache.hadoop.fs.FileSystem.get(configuration)
    needed = dict(configuration.getValByRegex(_NEEDED))
    said = {
        name[len("spark.hadoop.") :]: value
        for name, value in context.getConf().getAll()
        if name.startswith("spark.hadoop.")
    }
    own = {name: configuration.get(name) for name in _SPARKS}
    configuration.clear()
    # Where each entry came from outlives it, and is copied for each file that is read.
    sources = java.java.lang.Class.forName("org.apache.hadoop.conf.Configuration").getDeclaredField("updatingResource")
    sources.setAccessible(True)
    sources.get(configuration).clear()
    for name, value in {**needed, **own, **said}.items():
        configuration.set(name, value)
    for name in _NAMES:
        setattr(java, name, getattr(java, name))
    start_no_processes(context, configuration)
