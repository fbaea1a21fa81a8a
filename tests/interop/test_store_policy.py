"""What goes into columns of other types, under each policy of store assignment, played by delta-spark and by us: the same
values are stored, the same refused.

Of what is listed in `stored_pairs` a part is played; `ALLUVIUM_STORED_VALUES=all` plays it all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import play_stored
import pytest
import stored_pairs
from pyspark.sql import SparkSession
from recorded import INTEROP, answers
from reference_engine import NEEDS_REFERENCE

import alluvium

pytestmark = [*NEEDS_REFERENCE, pytest.mark.slow]

#: Every which pair of a value and a verb is played; no divisor of the number of verbs, so that each has its turn.
STRIDE = 1 if os.environ.get("ALLUVIUM_STORED_VALUES") == "all" else 23
CODE = [INTEROP.parent / "support/stored_pairs.py"]

#: Where we differ: verbs and what they store, under settings whose names begin so.
DIFFERENT: tuple[tuple[str, str, str], ...] = (
    # A column of nulls alone is none there.
    ("", "save", "null -> int"),
    # There fields go by their places in this method, in this version.
    ("", "DeltaTable.update", "named_struct('b', 5, 'a', 7) -> struct<a:int,b:int>"),
    ("", "DeltaTable.update", "named_struct('x', 5, 'y', 7) -> struct<a:int,b:int>"),
    # This method goes by the policy within arrays alone.
    (
        "strict",
        "DeltaTable.update",
        "array(named_struct('a', '7', 'b', 1), null) -> array<struct<a:int,b:int>>",
    ),
    # And in this statement where a value has to be cast, or no name is known.
    ("", "by name", "named_struct('x', 5, 'y', 7) -> struct<a:int,b:int>"),
    # An internal error there: a cast that waits for the session's time zone.
    *(
        ("strict", verb, pair)
        for verb in ("update", "merge update", "merge update star", "merge insert", "merge insert star")
        for pair in (
            "date'2024-01-02' -> timestamp",
            "timestamp_ntz'2024-01-02 03:04:05' -> timestamp",
            "timestamp'2024-01-02 03:04:05' -> timestamp_ntz",
        )
    ),
)


@pytest.fixture(scope="module")
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    session = spark.newSession()
    alluvium.enable(session)
    yield session
    alluvium.disable(session)


@pytest.mark.parametrize("name", stored_pairs.PLAYED)
def test_the_same_is_stored_and_refused(enabled, tmp_path, name):
    (theirs,) = answers(tmp_path, [stored_pairs.job(name, str(tmp_path / "theirs"))], "play_stored", CODE)
    first = list(stored_pairs.PLAYED).index(name) % STRIDE
    ours = play_stored.run(enabled, {**stored_pairs.job(name, str(tmp_path / "ours")), "every": STRIDE, "first": first})
    compared = [(pair, verb) for pair in ours for verb in ours[pair]]
    assert compared
    other = [
        (pair, verb, ours[pair][verb], theirs[pair][verb])
        for pair, verb in compared
        if _outcome(ours[pair][verb]) != _outcome(theirs[pair][verb])
        and not any(name.startswith(setting) and (verb, pair) == (v, p) for setting, v, p in DIFFERENT)
    ]
    assert not other


def _outcome(stored: object) -> object:
    """Errors are compared as such: their texts are each engine's own."""
    return "refused" if isinstance(stored, dict) else stored
