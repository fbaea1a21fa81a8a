"""Every case of the corpus over Spark Connect: `alluvium.read` with nothing of ours in the server."""

from __future__ import annotations

import pytest

from conformance.lanes import ConnectLane

pytestmark = [pytest.mark.conformance, pytest.mark.connect]


def test_connect(case, check_case, connect):
    check_case(case, lambda url: ConnectLane(url, connect))
