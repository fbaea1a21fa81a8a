r"""Every case of the corpus, through Spark: \`alluvium.read\`."""

from __future__ import annotations

import pytest

from conformance.lanes import SparkLane

pytestmark = [pytest.mark.conformance, pytest.mark.spark]


def test_spark(case, check_case, spark):
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    check_case(case, lambda url: SparkLane(url, spark))
