"""Rows that a Connect server keeps: it is told when nobody has them any more, and never by the garbage collector."""

from __future__ import annotations

import gc

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import CachedRemoteRelation

from alluvium.spark.kept import _GONE, forget_gone, keep_rows

pytestmark = pytest.mark.connect


def test_the_server_is_told_by_the_next_statement(connect, monkeypatch):
    forget_gone(connect)
    kept = keep_rows(connect.range(3))
    number = kept._plan._relation_id
    circle = [kept, kept._plan]
    circle.append(circle)
    with monkeypatch.context() as patched:
        # Whatever the collector did here would be done amid any call.
        patched.setattr(connect.client, "_channel", None)
        patched.setattr(connect.client, "execute_command", None)
        del kept, circle
        gc.collect()
    assert list(_GONE[connect]) == [(CachedRemoteRelation, number)]
    again = DataFrame(CachedRemoteRelation(number, None), connect)
    assert again.count() == 3
    assert keep_rows(connect.range(5)).count() == 5
    with pytest.raises(PySparkException):
        again.count()
