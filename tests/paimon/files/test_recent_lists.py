"""Manifest lists that are remembered: by their bytes, a few, and none that is large."""

from __future__ import annotations

from alluvium.paimon.files.recent_lists import recall, remember
from alluvium.paimon.terms.spec import MANIFESTS


def test_what_is_remembered() -> None:
    first, other = MANIFESTS.empty_table(), MANIFESTS.empty_table()
    remember(b"first", first)
    remember(b"other", other)
    assert (recall(b"first") is first, recall(b"other") is other, recall(b"none")) == (True, True, None)
    remember(bytes(100_000), first)
    assert recall(bytes(100_000)) is None
    for n in range(31):
        recall(b"first")
        remember(b"%d" % n, other)
    assert (recall(b"first") is first, recall(b"other")) == (True, None)
