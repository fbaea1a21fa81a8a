"""Every case of the Paimon corpus, with Spark: `alluvium.read`."""

from __future__ import annotations

import pytest

from conformance_paimon.judge import SparkLane

pytestmark = [pytest.mark.conformance, pytest.mark.spark]


def test_spark(paimon_case, check_reads, spark):
    check_reads(paimon_case, SparkLane(spark))
