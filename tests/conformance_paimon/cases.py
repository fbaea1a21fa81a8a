"""The Paimon cases of the corpus: where they are, what they hold."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def find_corpus() -> Path | None:
    """The folder of the cases, or None where the corpus is not installed."""
    named = os.environ.get("ALLUVIUM_CONFORMANCE")
    folder = (Path(named) if named else ROOT.parent / "shared" / "conformance") / "paimon" / "cases"
    return folder if folder.is_dir() else None


@dataclass(frozen=True)
class Case:
    """One table with its reads; `document` is its `case.json` as it stands."""

    folder: Path
    document: dict[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def reads(self) -> list[dict[str, Any]]:
        return list(self.document["read"])


def load_cases() -> list[Case]:
    corpus = find_corpus()
    if corpus is None:
        return []
    folders = sorted(path.parent for path in corpus.glob("*/case.json"))
    return [Case(folder, json.loads((folder / "case.json").read_text(encoding="utf-8"))) for folder in folders]


def prepare_table(case: Case) -> Path:
    """The table's path; files that its manifests name by absolute paths are copied to where these lead."""
    external = case.document.get("external")
    if external is not None:
        place = Path(external["prefix"].split(":", 1)[1])
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(case.folder / external["dir"], place)
    return case.folder / "table"
