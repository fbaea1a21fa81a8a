"""Expectations of the corpus that we hold to be wrong, each with the sentence that says so. Keep this short."""

from __future__ import annotations

from collections.abc import Mapping

#: Case and expectation, as in the names of verdicts without the lane.
DISPUTED: Mapping[str, str] = {
    "ds44-unknown-files-in-log read latest": (
        "expects version 6 because of a file `00000000000000000006.checkpoint`, which is neither a commit nor a checkpoint: "
        '"The format of the checkpoint file name can take one of two forms: n.checkpoint.parquet [...] n.checkpoint.o.p.parquet". '
        "The newest commit is 4, and the case's own description says that such files change nothing."
    ),
}


def is_disputed(name: str) -> bool:
    """Whether a verdict (`"lane case expectation"`) is about a disputed expectation."""
    return name.split(" ", 1)[-1] in DISPUTED
