"""The cases of the corpus: where they are, what they hold, a copy of their table where one must be set up first."""

from __future__ import annotations

import json
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def find_corpus() -> Path | None:
    """The folder of the Delta cases, or None where the corpus is not installed."""
    named = os.environ.get("ALLUVIUM_CONFORMANCE")
    folder = (Path(named) if named else ROOT.parent / "shared" / "conformance") / "delta"
    return folder if folder.is_dir() else None


@dataclass(frozen=True)
class Case:
    """One table with its expectations; `document` is its `case.json` as it stands."""

    folder: Path
    document: dict[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def disputed(self) -> bool:
        return "disputed" in self.document

    def entries(self, key: str) -> list[dict[str, Any]]:
        """The undisputed entries of a list such as `read`, `cdf` or `predicates`."""
        return [entry for entry in self.document.get(key) or [] if "disputed" not in entry]


def load_cases() -> list[Case]:
    corpus = find_corpus()
    if corpus is None:
        return []
    folders = sorted(path.parent for path in corpus.glob("*/case.json"))
    return [Case(folder, json.loads((folder / "case.json").read_text(encoding="utf-8"))) for folder in folders]


def prepare_table(case: Case, scratch: Path) -> Path:
    """The table's path: in the corpus, or a copy in `scratch` where the case has a `setup`."""
    setup = case.document.get("setup")
    original = case.folder / "table"
    if not setup:
        return original
    copy = scratch / "table"
    shutil.copytree(original, copy)
    # the corpus may be read-only, and copying keeps the modes
    for path in (copy, *copy.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    for change in setup.get("replace", ()):
        file = copy / change["file"]
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(change["from"], change["to"].replace("{TABLE}", str(copy))), encoding="utf-8")
    for name, milliseconds in setup.get("mtime_ms", {}).items():
        os.utime(copy / name, ns=(milliseconds * 1_000_000,) * 2)
    return copy
