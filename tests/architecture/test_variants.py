"""Phases that share the variants of tests play all of them together, and none twice."""

from __future__ import annotations

import pytest

pytest_plugins = ("pytester",)

FILE = """
import pytest

@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("mode", ["mask", "rewrite"])
def test_pairs(mode, when): ...

@pytest.mark.parametrize("table", range(5))
def test_tables(table): ...

def test_alone(): ...
"""


def played(pytester: pytest.Pytester, *options: str) -> list[str]:
    found = pytester.inline_run("-p", "variants", "-p", "no:cacheprovider", *options)
    return sorted(
        report.nodeid.partition("::")[2]
        for report in found.getreports("pytest_runtest_logreport")
        if report.when == "call"
    )


def test_two_turns_play_every_variant_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(**{"shared/test_some": FILE})
    turns = [played(pytester, f"--variants={turn}/2", "--variants-of=shared") for turn in (0, 1)]
    assert sorted([*turns[0], *turns[1]]) == sorted([*played(pytester), "test_alone"])
    for turn in turns:
        assert {name for name in turn if "pairs" in name} in (
            {"test_pairs[mask-before]", "test_pairs[rewrite-after]"},
            {"test_pairs[mask-after]", "test_pairs[rewrite-before]"},
        )


def test_other_folders_play_all(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(**{"alone/test_some": FILE})
    every = played(pytester)
    assert len(every) == 10, "4 pairs, 5 tables, 1 alone"
    assert played(pytester, "--variants=0/2", "--variants-of=shared") == every


def test_tests_without_variants_take_turns_where_that_is_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(**{"shared/test_some": FILE})
    turns = [played(pytester, f"--turns={turn}/3", "--turns-of=shared") for turn in range(3)]
    assert sum("test_alone" in turn for turn in turns) == 1
    for turn in turns:
        assert sorted({*turn, "test_alone"}) == played(pytester), "those with variants are played whatever the turn"
    both = [
        played(pytester, "--variants=0/2", "--variants-of=shared", f"--turns={n}/3", "--turns-of=shared")
        for n in range(3)
    ]
    assert len({len([name for name in turn if "[" in name]) for turn in both}) == 1
    assert sum("test_alone" in turn for turn in both) == 1


def test_one_variant_of_each_test(pytester: pytest.Pytester) -> None:
    named = FILE.replace('["before", "after"]', '["before", "after"], ids=["b", "a"]')
    pytester.makepyfile(**{"any/test_some": FILE, "any/test_named": named})
    every, some = played(pytester), played(pytester, "--one-variant")
    assert len(every) == 20 and set(some) <= set(every)
    assert sorted(name.partition("[")[0] for name in some) == sorted(2 * ["test_alone", "test_pairs", "test_tables"])
