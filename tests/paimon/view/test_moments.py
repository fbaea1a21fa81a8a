"""Times in the documents of tags, as Java writes them: texts, or lists of their parts without the zeros at their end."""

from __future__ import annotations

import datetime as dt

import pytest

from alluvium.paimon.view.system.system_tables import _moment


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ([2024, 1, 2, 3, 4], dt.datetime(2024, 1, 2, 3, 4)),
        ([2024, 1, 2, 3, 4, 5], dt.datetime(2024, 1, 2, 3, 4, 5)),
        ([2024, 1, 2, 3, 4, 5, 6_000], dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
        ([2024, 1, 2, 3, 4, 5, 999_999_999], dt.datetime(2024, 1, 2, 3, 4, 5, 999_999)),
        ([2024, 1, 2, 3], None),
        ("2024-01-02T03:04:05.123", dt.datetime(2024, 1, 2, 3, 4, 5, 123_000)),
        ("2024-01-02T03:04:05.123456789", dt.datetime(2024, 1, 2, 3, 4, 5, 123_000)),
        ("2024-01-02T03:04", dt.datetime(2024, 1, 2, 3, 4)),
        (None, None),
        (7, None),
    ],
)
def test_moments(value: object, wanted: dt.datetime | None) -> None:
    assert _moment(value) == wanted
