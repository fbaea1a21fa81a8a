"""Fixtures of the corpus, the ratchet of what once was right, and the figures at the end of the run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from ratchet import Ratchet

from conformance.cases import Case, load_cases, prepare_table
from conformance.disputes import is_disputed
from conformance.lanes import Lane
from conformance.runner import OUTCOMES, Verdict, judge

RATCHET = Ratchet(Path(__file__).parent / "right.txt")
SHOWN_NOTES = 400

VERDICTS: list[Verdict] = []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        cases = load_cases()
        missing = [pytest.param(None, marks=pytest.mark.skip("no corpus: set ALLUVIUM_CONFORMANCE"), id="absent")]
        metafunc.parametrize("case", [pytest.param(case, id=case.name) for case in cases] or missing)


@pytest.fixture
def check_case(tmp_path: Path) -> Callable[[Case, Callable[[str], Lane]], None]:
    """Judges a case in the lane that is made for its table; fails on what is wrong, or right no more."""

    def check(case: Case, lane_of: Callable[[str], Lane]) -> None:
        if case.disputed:
            pytest.skip("the reference implementations disagree about this table")
        lane = lane_of(str(prepare_table(case, tmp_path)))
        verdicts = [v for v in judge(case, lane) if not is_disputed(v.name)]
        VERDICTS.extend(verdicts)
        bad = RATCHET.complaints(verdicts)
        if bad:
            pytest.fail("\n".join(bad), pytrace=False)
        if verdicts and all(v.outcome == "refused" for v in verdicts):
            pytest.skip(f"refused: {verdicts[0].note.splitlines()[0][:SHOWN_NOTES]}")

    return check


def pytest_sessionfinish(session: pytest.Session) -> None:
    RATCHET.finish(VERDICTS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not VERDICTS:
        return
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for verdict in VERDICTS:
        counts[verdict.lane, verdict.kind][verdict.outcome] += 1
        counts[verdict.lane, "all"][verdict.outcome] += 1
    terminalreporter.section("conformance")
    terminalreporter.write_line(f"{'lane':<7}{'kind':<11}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES))
    for (lane, kind), count in sorted(counts.items(), key=lambda item: (item[0][0], item[0][1] == "all", item[0][1])):
        terminalreporter.write_line(f"{lane:<7}{kind:<11}" + "".join(f"{count[outcome]:>9}" for outcome in OUTCOMES))
    for verdict in VERDICTS:
        if verdict.outcome == "weak":
            terminalreporter.write_line(f"weak: {verdict.name}: {verdict.note[:SHOWN_NOTES]}")
