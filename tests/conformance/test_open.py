r"""Every case of the corpus, without Spark: \`alluvium.open\`."""

from __future__ import annotations

import pytest

from conformance.lanes import OpenLane

pytestmark = pytest.mark.conformance


def test_open(case, check_case):
    check_case(case, OpenLane)
