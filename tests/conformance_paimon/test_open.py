"""Every case of the Paimon corpus, without Spark: `alluvium.open`."""

from __future__ import annotations

import pytest

from conformance_paimon.judge import OpenLane

pytestmark = pytest.mark.conformance


def test_open(paimon_case, check_reads):
    check_reads(paimon_case, OpenLane())
