"""What the reference answered to jobs of which nothing of ours is a part, kept beside the tests (tests/interop/recorded/).

Its half of such a test is the longer one, and its answer the same in every run: that of a release to a text. So an answer
is asked for once, and kept under a digest of the job, of the code that carries it out and of the release; whatever of
these changes is asked anew. ALLUVIUM_RECORDED=check asks for all and compares (`make interop`), =write keeps what is new.
Texts of errors are the reference's own and are not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reference_engine import REFERENCE, judge

RECORDED = Path(__file__).parents[1] / "interop" / "recorded"
INTEROP = RECORDED.parent

#: Paths of a run.
_ROOT = "{root}"


def answers(folder: Path, jobs: Sequence[dict[str, Any]], script: str, code: Sequence[Path]) -> list[Any]:
    """The reference's answers to jobs.

    Args:
        folder: Of this run; its path in jobs and answers is kept as `{root}`.
        jobs: As `reference_engine.judge` takes them.
        script: The module that carries them out, which is part of the digest.
        code: What else is, files or folders: what the module imports of the tests.
    """
    mode = os.environ.get("ALLUVIUM_RECORDED", "")
    kept_file = RECORDED / f"{script}.json"
    kept: dict[str, Any] = json.loads(kept_file.read_text()) if kept_file.exists() else {}
    release = _release([INTEROP / f"{script}.py", *code])
    digests = [_digest(json.dumps(job, sort_keys=True).replace(str(folder), _ROOT), release) for job in jobs]
    asked = [n for n, digest in enumerate(digests) if mode == "check" or digest not in kept]
    found = dict(zip(asked, _ask(folder, [jobs[n] for n in asked], script), strict=True))
    if mode == "check":
        stale = [n for n in asked if digests[n] in kept and kept[digests[n]] != found[n]]
        assert not stale, f"the reference answers otherwise than {kept_file} says: jobs {stale}"
    told = [found[n] if n in found else kept[digest] for n, digest in enumerate(digests)]
    if mode == "write":
        RECORDED.mkdir(exist_ok=True)
        kept_file.write_text(json.dumps(dict(sorted(zip(digests, told, strict=True))), indent=1) + "\n")
    return told


def _ask(folder: Path, jobs: list[dict[str, Any]], script: str) -> list[Any]:
    if not jobs:
        return []
    said = judge(folder, jobs, script)
    assert [answer["error"] for answer in said if answer["error"]] == []
    return [_without_texts(json.loads(json.dumps(a["result"]).replace(str(folder), _ROOT))) for a in said]


def _without_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: None if key == "text" else _without_texts(inner) for key, inner in value.items()}
    return [_without_texts(inner) for inner in value] if isinstance(value, list) else value


def _release(code: Sequence[Path]) -> str:
    """What answers, and by which code."""
    jars = sorted(path.name for path in (REFERENCE / "jars").glob("delta-*.jar"))
    files = [file for path in code for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    return "\n".join([*jars, *(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)])


def _digest(job: str, release: str) -> str:
    return hashlib.sha256(f"{release}\n{job}".encode()).hexdigest()[:24]
