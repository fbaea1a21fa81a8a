"""Where two engines' stories of a scenario differ: `step: what: ours | theirs`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """Every place at which two documents differ."""
    ours, theirs = opened(ours), opened(theirs)
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys(), key=str):
            if key not in ours or key not in theirs:
                only = "ours" if key in ours else "theirs"
                yield f"{where}.{key}: only {only}: {short((ours if key in ours else theirs)[key])}"
            else:
                yield from differences(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(mine, other, f"{where}[{i}]")
    elif ours != theirs:
        yield f"{where}: {short(ours)} | {short(theirs)}"


def opened(value: Any) -> Any:
    """Documents that stand as text, to tell in which place they differ; features of a protocol have no order."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    if isinstance(value, dict):
        return {k: sorted(v) if k.endswith("Features") and isinstance(v, list) else v for k, v in value.items()}
    return value


def short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 700 else text[:700] + "..."


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    """Differences of one scenario; a step that only one engine refuses ends it, for what follows differs by that."""
    for mine, other in zip(ours["steps"], theirs["steps"], strict=True):
        step = mine["step"]
        if (mine["error"] is None) != (other["error"] is None):
            yield f"{step}: refused by one: {mine['error']} | {other['error']}"
        yield from differences(
            {k: v for k, v in mine.items() if k != "error"}, {k: v for k, v in other.items() if k != "error"}, step
        )
    if "end" in ours:
        yield from differences(ours["end"], theirs["end"], "end")


if __name__ == "__main__":
    mine, other = (json.loads(Path(p).read_text()) for p in sys.argv[1:3])
    for name in sys.argv[3:] or mine:
        if name in other and name in mine:
            found = list(compare(mine[name], other[name]))
            print(f"=== {name}: {len(found)}")
            for line in found:
                print("  ", line)
