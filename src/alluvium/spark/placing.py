"""Rows put into tasks of known numbers, by keys that Spark's hash partitioning sends there."""

from __future__ import annotations

from functools import lru_cache

from pyspark.sql import Column, DataFrame

from alluvium.codecs.murmur3 import SPARK_SEED

_WORD = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593


def place_rows(rows: DataFrame, key: Column, tasks: int) -> DataFrame:
    """The rows, each in the task whose key (`task_keys`) it has; adaptive execution leaves the tasks as they are."""
    return rows.repartition(tasks, key)


@lru_cache(maxsize=8)
def task_keys(tasks: int) -> tuple[int, ...]:
    """For each of so many tasks a number that Spark's hash partitioning of a bigint column sends to it."""
    found: dict[int, int] = {}
    key = 0
    # About `tasks * ln(tasks)` numbers are tried.
    while len(found) < tasks:
        found.setdefault(_hash_of(key) % tasks, key)
        key += 1
    return tuple(found[task] for task in range(tasks))


def _hash_of(key: int) -> int:
    """Spark's Murmur3 of a bigint, with its sign: the lower word first."""
    state = _mixed(_mixed(SPARK_SEED, key & _WORD), key >> 32 & _WORD) ^ 8
    state = (state ^ state >> 16) * 0x85EBCA6B & _WORD
    state = (state ^ state >> 13) * 0xC2B2AE35 & _WORD
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _mixed(state: int, word: int) -> int:
    state ^= _rotated(word * _C1 & _WORD, 15) * _C2 & _WORD
    return _rotated(state, 13) * 5 + 0xE6546B64 & _WORD


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
