"""Engines of Paimon tables by name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reference_engine import ENGINES, REFERENCE

from model.engines.reference import ReferenceEngine
from model.paimon.python_engine import PaimonPython

if TYPE_CHECKING:
    from model.script import Engine

#: What pypaimon 2.1 says of what it does not do.
KNOWN = ("",)
#: What the core of Paimon's Java has whatever the table; of the others see `JavaEngine.can`.
JAVA_VERBS = frozenset(
    {
        "create", "append", "overwrite", "dynamic_overwrite", "delete", "update", "merge", "compact", "compact_manifests",
        "create_tag", "delete_tag", "rollback", "purge", "expire", "orphans", "add_column", "rename_column",
        "drop_column", "widen", "set_option", "create_branch", "append_to_branch", "delete_branch", "fast_forward",
        "set_consumer",
    }
)  # fmt: skip


def _lets_go(call: dict[str, Any]) -> bool:
    """Whether Java would delete files that a branch needs: it keeps them for tags of the main one alone."""
    takes_tags = call["verb"] in ("delete_tag", "rollback") or (call["verb"] == "create_tag" and call["replace"])
    return takes_tags or (call["verb"] == "expire" and call["loose"])


class JavaEngine(ReferenceEngine):
    """Paimon's Java in a process of its own, one JVM for all tables; it reads older states and tags, too."""

    #: A writer of buckets compacts by itself, which is a snapshot of its own behind the rows'.
    compacts_too = True
    #: Its batches do (`batchScanSkipLevel0`): they tell nothing of such tables (docs/guides/paimon.md, Changes).
    passes_over_new = True
    streams = False

    def __init__(self) -> None:
        super().__init__("java", JAVA_VERBS, ())

    def can(self, call: dict[str, Any], constrained: bool) -> bool:
        if call["branches"] and _lets_go(call):
            return False
        if call["verb"] == "create_branch" and call["expired"]:
            # It copies the snapshot's file, which is gone, and leaves a branch behind that has none.
            return False
        # Rows of append tables are changed by Spark's and Flink's own code, which is not in the kit.
        if call["verb"] == "compact" and call["of_buckets"] and not call["full"]:
            # It compacts what it has compacted within the same job, and then refuses to commit, be all rows its own.
            return False
        return super().can(call, constrained) and ("edits" not in call or call["edits"]["keyed"])

    def rows_at(self, url: str, **what: Any) -> list[dict[str, Any]]:
        """Rows as `JavaEngine.rows_at` of the process reads them: the newest, of a `version` or a `tag`, some of them `where`."""
        return self._read(url, at=what) or []

    def rows(self, url: str, version: int) -> list[dict[str, Any]]:
        return self.rows_at(url)


class PypaimonEngine(ReferenceEngine):
    """It appends, and compacts nothing."""

    def __init__(self) -> None:
        super().__init__("pypaimon", frozenset({"append"}), KNOWN)

    def can(self, call: dict[str, Any], constrained: bool) -> bool:
        return super().can(call, constrained) and not call["by_writers"]


def is_missing(name: str) -> str | None:
    """Why an engine cannot play here."""
    if name in ("java", "pypaimon") and not (REFERENCE / "venv/bin/python").exists():
        return f"{name} is not installed: ../shared/reference/setup installs it"
    has_java = list((REFERENCE / "jars").glob("paimon-bundle-*.jar")) and (ENGINES / "paimon_java.py").exists()
    if name == "java" and not has_java:
        return "Paimon Java is not installed: ../shared/reference/setup installs it"
    return None


def paimon_engines(names: list[str]) -> dict[str, Engine]:
    """Engines, each started."""
    found: dict[str, Engine] = {}
    for name in names:
        if name == "python":
            found[name] = PaimonPython()
        elif name == "java":
            found[name] = JavaEngine()
        elif name == "spark":
            found |= _spark_engines()
        else:
            found[name] = PypaimonEngine()
    return found


def _spark_engines() -> Mapping[str, Engine]:
    """Loaded by name: the others are played where pyspark is not installed."""
    sessions, ours = (importlib.import_module(f"model.{name}") for name in ("engines.sessions", "paimon.spark_engine"))
    session = sessions.classic_session()
    sessions.spark_engines(session)
    found: Mapping[str, Engine] = ours.paimon_spark_engines(session)
    return found
