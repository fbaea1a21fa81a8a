"""Fixtures of the corpus, the ratchet of what once was right, and the figures at the end of the run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from ratchet import Ratchet

from conformance_paimon.cases import Case, load_cases, prepare_table
from conformance_paimon.judge import OUTCOMES, Lane, Verdict, judge

RATCHET = Ratchet(Path(__file__).parent / "right.txt")

VERDICTS: list[Verdict] = []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "paimon_case" in metafunc.fixturenames:
        missing = [pytest.param(None, marks=pytest.mark.skip("no corpus: set ALLUVIUM_CONFORMANCE"), id="absent")]
        metafunc.parametrize("paimon_case", [pytest.param(c, id=c.name) for c in load_cases()] or missing)


@pytest.fixture
def check_reads() -> Callable[[Case, Lane], None]:
    """Judges the reads of a case; fails on what is wrong, or right no more."""

    def check(case: Case, lane: Lane) -> None:
        verdicts = list(judge(case, str(prepare_table(case)), lane))
        VERDICTS.extend(verdicts)
        bad = RATCHET.complaints(verdicts)
        if bad:
            pytest.fail("\n".join(bad), pytrace=False)
        if verdicts and all(v.outcome == "refused" for v in verdicts):
            pytest.skip(f"refused: {verdicts[0].note.splitlines()[0][:400]}")

    return check


def pytest_sessionfinish(session: pytest.Session) -> None:
    RATCHET.finish(VERDICTS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not VERDICTS:
        return
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for verdict in VERDICTS:
        counts[verdict.lane][verdict.outcome] += 1
    terminalreporter.section("conformance, Paimon")
    terminalreporter.write_line(f"{'lane':<9}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES))
    for lane, count in sorted(counts.items()):
        terminalreporter.write_line(f"{lane:<9}" + "".join(f"{count[outcome]:>9}" for outcome in OUTCOMES))
    for verdict in VERDICTS:
        if verdict.outcome == "refused":
            terminalreporter.write_line(f"refused: {verdict.name}: {verdict.note.splitlines()[0][:200]}")
