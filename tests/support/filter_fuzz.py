"""Plays random conditions over random tables in every lane, beside Spark's own answer over plain rows that skip nothing."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from filter_conditions import Conditions
from filter_tables import DISPUTED_ZONES, FILES, ID, ROWS, Made, make_table
from jvm import having
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.delta.view.scan import select_files, whole_files
from alluvium.delta.view.source import DeltaSource
from alluvium.errors import AlluviumError
from alluvium.expr.evaluate import evaluate
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import Expression, Unknown, in_zone, walk
from alluvium.spark.scan.native_lane.index import planned_files
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.statements.conditions import text_condition

FAILURES = (AlluviumError, PySparkException, Py4JJavaError)


@dataclass
class Found:
    """What a run has found.

    Attributes:
        differences: Seed, lane, condition, and what is wrong.
        counts: How often what was asked.
    """

    differences: list[tuple[int, str, str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def settings(spark: SparkSession, made: Made) -> AbstractContextManager[None]:
    """The session as the table's seed has it."""
    return having(spark, {"spark.sql.session.timeZone": made.zone, "spark.sql.ansi.enabled": str(made.ansi).lower()})


class Play:
    """One table, and the conditions that are asked of it."""

    def __init__(self, spark: SparkSession, seed: int, folder: Path, found: Found) -> None:
        self.spark, self.seed, self.found = spark, seed, found
        self.folder = folder / f"seed-{seed}"
        self.url = str(self.folder / "table")
        self.made = make_table(seed)
        self.r = random.Random(f"conditions {seed}")

    # -- the table ----------------------------------------------------------------------------------------------------

    def write(self) -> None:
        builder = DeltaTable.create(self.spark).location(self.url)
        for name, ddl in self.made.declared.items():
            builder = builder.addColumn(name, ddl)
        for key, value in self.made.properties.items():
            builder = builder.property(key, value)
        if self.made.partition_by:
            builder = builder.partitionedBy(*self.made.partition_by)
        table = builder.execute()
        for n in range(len(self.made.files)):
            alluvium.write(self.frame_of(n), self.url, mode="append")
        if self.made.deletes:
            table.delete(f"{ID} % {ROWS} = {self.seed % ROWS} and {ID} < {ROWS * (FILES - 1)}")

    def frame_of(self, number: int) -> DataFrame:
        """The rows of a file: as Parquet has them, local times stay such."""
        raw = self.folder / f"rows-{number}.parquet"
        pq.write_table(self.made.files[number], raw)
        return self.spark.read.parquet(str(raw)).coalesce(1)

    def prepare(self) -> None:
        self.view = alluvium.open(self.url)
        self.snapshot = self.view._snapshot
        held = self.view.to_arrow(["*", "_file"])
        self.rows = held.select([n for n in held.column_names if n != "_file"])
        self.ids = held[ID].to_pylist()
        names = held["_file"].to_pylist()
        self.by_file: dict[str, set[int]] = {}
        for path, rid in zip(names, self.ids, strict=True):
            self.by_file.setdefault(path.rsplit("/", 1)[-1], set()).add(rid)
        self.frame = alluvium.read(self.spark, self.url)
        # Rows that no index stands behind, with the attributes of the table's own.
        self.plain = self.frame.localCheckpoint(eager=True)

    # -- what is right ------------------------------------------------------------------------------------------------

    def expected(self, texts: list[str]) -> dict[str, set[int]]:
        """By condition, the rows for which Spark finds it true; without those that fail."""
        alive = []
        for condition in texts:
            try:
                self.plain.where(condition)
                alive.append(condition)
            except PySparkException:
                self.found.counts["not a condition"] += 1
        answers: dict[str, set[int]] = {}
        for start in range(0, len(alive), 20):
            self._answer(alive[start : start + 20], answers)
        return answers

    def _answer(self, texts: list[str], answers: dict[str, set[int]]) -> None:
        try:
            rows = self.plain.selectExpr(ID, *(f"({c}) as `answer {n}`" for n, c in enumerate(texts))).collect()
        except FAILURES:
            if len(texts) > 1:
                half = len(texts) // 2
                self._answer(texts[:half], answers)
                self._answer(texts[half:], answers)
            else:
                self.found.counts["fails in Spark"] += 1
            return
        for n, condition in enumerate(texts):
            answers[condition] = {row[0] for row in rows if row[n + 1] is True}

    # -- what is asked ------------------------------------------------------------------------------------------------

    def differs(self, lane: str, condition: str, problem: str) -> None:
        self.found.differences.append((self.seed, lane, condition, problem))

    def check_tree(self, lane: str, condition: str, tree: Expression, expected: set[int]) -> None:
        """What we understand of a condition says the same of each row, and leaves out no file with rows."""
        count = self.found.counts
        count[f"{lane}: conditions"] += 1
        unknown = any(isinstance(node, Unknown) for node in walk(tree))
        count[f"{lane}: understood"] += not unknown
        # Of old rows our tables may say something else of a zone: which files they are in is not decided by that.
        if not unknown and self.made.zone not in DISPUTED_ZONES:
            try:
                truth = evaluate(tree, self.rows, self.made.zone).to_pylist()
            except AlluviumError:
                count[f"{lane}: refused"] += 1
            else:
                ours = {rid for rid, t in zip(self.ids, truth, strict=True) if t is True}
                if ours != expected:
                    wrong = sorted(ours ^ expected)
                    self.differs(lane, condition, f"evaluates otherwise for rows {wrong[:6]}: {tree}")
        kept = {_last(path) for path in select_files(self.snapshot, tree).files["path"].to_pylist()}
        lost = {path for path, ids in self.by_file.items() if ids & expected} - kept
        count[f"{lane}: files skipped"] += len(self.by_file) - len(kept)
        if lost:
            self.differs(
                lane,
                condition,
                f"leaves out files with {sorted(set().union(*(self.by_file[p] for p in lost)) & expected)}: {tree}",
            )
        whole = whole_files(self.snapshot, tree)
        for path in map(_last, whole.every["path"].to_pylist()):
            if not self.by_file.get(path, set()) <= expected:
                self.differs(lane, condition, f"takes a file as a whole: {tree}")

    def scan_trees(self, condition: str) -> list[Expression]:
        """What the index behind the table's frame reads of a query's filters."""
        plan = self.frame.where(condition)._jdf.queryExecution().optimizedPlan()
        found = []
        pending = [(plan, [])]
        while pending:
            node, filters = pending.pop()
            name = str(node.nodeName())
            if name == "Filter":
                filters = [*filters, node.condition()]
            elif name.startswith("Project"):
                filters = []
            elif name.startswith("LogicalRelation"):
                index = planned_files(str(node.relation().location().toString()))
                tree = None if index is None or not filters else index.predicate(filters)
                if tree is not None:
                    found.append(tree)
            elif name not in ("Union",):
                filters = []
            children = node.children()
            pending += [(children.apply(n), filters) for n in range(children.size())]
        return found

    def check(self, condition: str, expected: set[int], runs: bool) -> None:
        for tree in self._trees("scan", condition, lambda: self.scan_trees(condition)):
            # Of a table with masks its deleted rows are among the filters, which are not of the rows.
            self.check_tree("scan", condition, tree, expected)
        native = lambda: read_native(self.spark, DeltaSource(self.snapshot))  # noqa: E731
        schema = self.snapshot.config.schema
        verb = lambda: [text_condition(self.spark, condition, schema, "the condition", native)]  # noqa: E731
        for tree in self._trees("verb", condition, verb):
            self.check_tree("verb", condition, tree, expected)
        self.check_without_spark(condition, expected)
        if runs:
            self.found.counts["run"] += 1
            try:
                got = {row[0] for row in self.frame.where(condition).select(ID).collect()}
            except FAILURES as error:
                self.differs("run", condition, f"fails: {str(error)[:300]}")
                return
            if got != expected:
                self.differs("run", condition, f"gives {sorted(got ^ expected)} otherwise")

    def _trees(self, lane: str, condition: str, read: Callable[[], list[Expression]]) -> list[Expression]:
        try:
            return read()
        except AlluviumError as error:
            if lane != "verb":
                self.differs(lane, condition, f"fails: {error}")
            self.found.counts[f"{lane}: refused"] += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a difference
            self.differs(lane, condition, f"fails: {error!r:.300}")
        return []

    def check_without_spark(self, condition: str, expected: set[int]) -> None:
        count = self.found.counts
        if not self.made.ansi:
            return
        try:
            # As it is read over Connect: its local times are of the session's zone wherever it is evaluated.
            tree = in_zone(parse_predicate(condition, self.snapshot.config.schema, self.made.zone), self.made.zone)
            count["python: read"] += 1
            if any(isinstance(node, Unknown) for node in walk(tree)):
                return
            truth = evaluate(tree, self.rows, self.made.zone).to_pylist()
        except AlluviumError as error:
            count[f"python: {error.code}"] += 1
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a difference
            self.differs("python", condition, f"fails: {error!r:.300}")
            return
        count["python: understood"] += 1
        if self.made.zone == "UTC":
            got = set(alluvium.open(self.url).to_arrow([ID], where=condition)[ID].to_pylist())
            if got != expected or alluvium.open(self.url).count(condition) != len(expected):
                self.differs("python", condition, f"reads {sorted(got ^ expected)} otherwise")
        ours = {rid for rid, t in zip(self.ids, truth, strict=True) if t is True}
        if ours != expected and self.made.zone not in DISPUTED_ZONES:
            self.differs("python", condition, f"evaluates otherwise for rows {sorted(ours ^ expected)[:6]}: {tree}")
        self.check_tree("python", condition, tree, expected)

    def check_paimon(self, answers: dict[str, set[int]], runs: int) -> None:
        """The same rows in a Paimon table without keys, whose files carry bounds of another making."""
        url = str(self.folder / "paimon")
        try:
            for n in range(len(self.made.files)):
                alluvium.write(
                    self.frame_of(n), url, mode="append", format="paimon", partition_by=self.made.partition_by
                )
        except AlluviumError as error:
            self.found.counts[f"paimon: no table: {error.code}"] += 1
            return
        frame, alive = alluvium.read(self.spark, url), set(self.ids)
        for condition in self.r.sample(sorted(answers), min(runs, len(answers))):
            if "char(" in str(self.made.declared):
                break  # Here they are of any length, and nothing is padded.
            try:
                got = {row[0] for row in frame.where(condition).select(ID).collect()} & alive
            except FAILURES as error:
                self.found.counts["paimon: fails"] += 1
                self.found.counts[f"paimon: fails: {str(error)[:60]}"] += 1
                continue
            self.found.counts["paimon: run"] += 1
            if got != answers[condition]:
                self.differs("paimon", condition, f"gives {sorted(got ^ answers[condition])} otherwise")

    # -- verbs --------------------------------------------------------------------------------------------------------

    def check_verb(self, verb: str, condition: str, expected: set[int]) -> None:
        """What a verb leaves of a copy of the table is what the condition says."""
        copy = str(self.folder / "copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.url, copy)
        self.found.counts[f"verb {verb}"] += 1
        right = set(self.ids) - expected
        try:
            if verb == "delete":
                DeltaTable.forPath(self.spark, copy).delete(condition)
            elif verb == "merge":
                DeltaTable.forPath(self.spark, copy).merge(
                    self.spark.sql("select 1 `one one`"), condition
                ).whenMatchedDelete().execute()
            elif verb == "update":
                DeltaTable.forPath(self.spark, copy).update(condition, {ID: f"-1 - {ID}"})
                right = {-1 - x if x in expected else x for x in self.ids}
            else:
                none = alluvium.read(self.spark, copy).where("false")
                alluvium.write(none, copy, mode="overwrite", replaceWhere=condition)
        except AlluviumError as error:
            self.found.counts[f"verb {verb}: {error.code}"] += 1
            return
        except FAILURES as error:
            self.differs(verb, condition, f"fails: {str(error)[:300]}")
            return
        left = set(alluvium.open(copy).to_arrow([ID])[ID].to_pylist())
        if left != right:
            self.differs(verb, condition, f"leaves {sorted(left ^ right)} otherwise")

    def check_keys(self) -> None:
        """MERGE by a key whose bounds in the source leave files out."""
        leaf = self.r.choice(self.made.leaves)
        some = self.r.sample(self.ids, min(2, len(self.ids)))
        chosen = self.plain.where(f"{ID} in ({', '.join(map(str, some))})").selectExpr(f"{leaf.sql} as v").distinct()
        values = chosen.localCheckpoint()
        condition = f"t.{leaf.sql} = s.v"
        joined = self.plain.alias("t").join(values.alias("s"), sf.expr(condition), "left_semi")
        right = set(self.ids) - {row[0] for row in joined.select(ID).collect()}
        copy = str(self.folder / "copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.url, copy)
        self.found.counts["verb merge by key"] += 1
        try:
            merge = DeltaTable.forPath(self.spark, copy).alias("t").merge(values.alias("s"), condition)
            merge.whenMatchedDelete().execute()
        except FAILURES as error:
            self.differs("merge by key", condition, f"fails: {str(error)[:300]}")
            return
        left = set(alluvium.open(copy).to_arrow([ID])[ID].to_pylist())
        if left != right:
            self.differs("merge by key", f"{condition} with rows {some}", f"leaves {sorted(left ^ right)} otherwise")


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1]


VERBS = ("delete", "update", "merge", "replaceWhere")


def play(
    spark: SparkSession, seed: int, folder: Path, found: Found, *, conditions: int = 60, runs: int = 4, verbs: int = 1
) -> None:
    """One table with so many conditions; some of them run as queries, some as verbs."""
    one = Play(spark, seed, folder, found)
    shutil.rmtree(one.folder, ignore_errors=True)
    one.folder.mkdir(parents=True)
    with settings(spark, one.made):
        one.write()
        one.prepare()
        found.counts["tables"] += 1
        drawn = Conditions(one.made, one.r)
        texts = list(dict.fromkeys([*plain_conditions(one.made), *(drawn.condition() for _ in range(conditions))]))
        answers = one.expected(texts)
        run = set(one.r.sample(sorted(answers), min(runs, len(answers))))
        for condition, expected in answers.items():
            one.check(condition, expected, condition in run)
        for _ in range(2 * verbs):
            one.check_keys()
        if seed % 3 == 0:
            one.check_paimon(answers, 3 * runs)
        for verb in VERBS:
            for condition in one.r.sample(sorted(answers), min(verbs, len(answers))):
                one.check_verb(verb, condition, answers[condition])
    shutil.rmtree(one.folder, ignore_errors=True)


def plain_conditions(made: Made) -> list[str]:
    """Of each column by itself: what most filters are."""
    found = []
    for leaf in made.leaves:
        found += [f"{leaf.sql} is not null", f"{leaf.sql} is null", f"{leaf.sql} <=> {leaf.sql}"]
    return found
