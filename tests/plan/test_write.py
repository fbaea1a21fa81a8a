"""What a plan of rewritten rows says in numbers."""

from __future__ import annotations

import itertools

from alluvium.plan.write import DROPS, LOGS, LOOKS, REWRITES, Regrouped


def test_a_groups_code_tells_its_number_and_what_becomes_of_it() -> None:
    codes = set()
    for number, (rewrites, logs, drops, looks) in itertools.product(
        range(4), itertools.product((False, True), repeat=4)
    ):
        code = Regrouped.code(number, rewrites=rewrites, logs=logs, drops=drops, looks=looks)
        assert [bool(code & bit) for bit in (REWRITES, LOGS, DROPS, LOOKS)] == [rewrites, logs, drops, looks]
        codes.add(code)
    assert len(codes) == 4 * 16
