"""Equal texts have the same number, others another, whatever their length and wherever they lie in a column."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from alluvium.codecs.text_hashes import MAX_BYTES, hashes_of_length, text_hashes


def test_numbers_tell_texts_apart() -> None:
    rng = random.Random(5)
    texts = ["".join(rng.choices("ab/=%-0é", k=rng.choice((0, 1, 7, 8, 9, 40, 41)))) for _ in range(5_000)]
    hashes = text_hashes(pa.array(texts)).tolist()
    assert len(set(hashes)) == len(set(texts))
    shuffled = rng.sample(texts, len(texts))
    again = dict(zip(shuffled, text_hashes(pa.array(shuffled)).tolist(), strict=True))
    assert all(again[text] == number for text, number in zip(texts, hashes, strict=True))


@pytest.mark.parametrize("start", [0, 1, 3])
def test_slices(start: int) -> None:
    texts = pa.array(["a", "bb", "cc", "dd", "ee", "longer"])
    assert text_hashes(texts.slice(start)).tolist() == text_hashes(texts).tolist()[start:]
    two = texts.slice(1, 4)
    assert hashes_of_length(two, 2).tolist() == hashes_of_length(pa.array(two.to_pylist()), 2).tolist()


def test_of_long_texts_the_end_counts() -> None:
    long = "x" * MAX_BYTES
    same, other = text_hashes(pa.array([f"a{long}", f"b{long}"])).tolist()
    assert same == other
    assert len(set(text_hashes(pa.array([long, f"a{long}", f"ab{long}", f"a{long}y"])).tolist())) == 4


def test_nothing() -> None:
    assert text_hashes(pa.array([], pa.string())).tolist() == []
    assert len(set(text_hashes(pa.array(["", "", "a"])).tolist())) == 2
