"""What of a text is left to the server, because its optimizer makes something else of it."""

from __future__ import annotations

import pytest

from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import is_understood, named_paths
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.sessions.readings import read_in

SCHEMA = Struct((Field("ts", t.TIMESTAMP), Field("n", t.TIMESTAMP_NTZ), Field("d", t.DATE)))


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        ("cast(ts as timestamp_ntz) > timestamp_ntz'2005-10-30 02:00:01'", True),
        ("timestamp_ntz'2005-10-30 02:00:01' = cast(ts as timestamp_ntz)", True),
        ("d > '2020-01-01' or not (cast(ts as timestamp_ntz) in ('2005-10-30 02:00:01'))", True),
        ("cast(ts as timestamp_ntz) = n", True),
        ("cast(ts as date) = '2005-10-30'", False),
        ("n > '2005-10-30 02:00:01'", False),
        ("hour(cast(ts as timestamp_ntz)) = 2", False),
        ("ts > '2005-10-31 02:00:01'", False),
    ],
)
def test_local_times_beside_others(text: str, is_left: bool) -> None:
    for zone in ("Europe/Amsterdam", "UTC", "+01:00"):
        parsed = parse_predicate(text, SCHEMA, zone)
        found = read_in(parsed, zone)
        assert is_understood(found) is not (is_left and "/" in zone)
        assert named_paths(found) == named_paths(parsed)
