"""Plays scenarios on Paimon's Java engine, many in one JVM; run with the reference's Python: paimon_player.py FOLDER.

`FOLDER/*/script.json` is a scenario: steps of `paimon_java.py`; reads go to files, and what Java refuses is kept as text.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import paimon_java


def play(folder: Path) -> None:
    script = json.loads((folder / "script.json").read_text(encoding="utf-8"))
    for number, entry in enumerate(script["steps"]):
        action, given = next(iter(entry.items()))
        try:
            paimon_java.step(script["table"], action, given)
        except Exception as error:  # noqa: BLE001 - what Java refuses is a finding, not the end
            (folder / f"refused-{number}.txt").write_text(f"{action}: {str(error)[:3000]}", encoding="utf-8")
            if action != "read":
                return


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*/script.json")):
        play(path.parent)
        print(path.parent.name, flush=True)
