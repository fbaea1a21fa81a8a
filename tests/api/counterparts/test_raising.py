"""Errors that are ours and delta-spark's at once."""

from __future__ import annotations

import pickle
import traceback

import pytest
from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException

from alluvium.api.counterparts.exceptions import ConcurrentAppendException, DeltaConcurrentModificationException
from alluvium.api.counterparts.raising import counterparts, raises_counterparts
from alluvium.api.delta.delta_errors import NotATable, WrongValue
from alluvium.errors import CommitConflict, Conflict, InvalidRequest, NotFound


def raised(error: Exception, door: str = "delete", table_format: str = "delta") -> Exception:
    with pytest.raises(type(error)) as caught, counterparts(door, table_format):
        raise error
    return caught.value


def test_an_error_is_ours_and_theirs():
    error = raised(InvalidRequest("rows stay", code="append-only", url="file:/t", hint="another table"))
    assert isinstance(error, UnsupportedOperationException)
    assert (error.code, error.url, error.hint, error.message) == (
        "append-only",
        "file:/t",
        "another table",
        "rows stay",
    )
    assert error.getCondition() == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    assert error.getSqlState() == "42809"
    assert error.getQueryContext() == []
    assert str(error) == "[DELTA_CANNOT_MODIFY_APPEND_ONLY] rows stay (table: file:/t)\nhint: another table"
    assert error.getMessage() == str(error)
    with pytest.warns(FutureWarning):
        assert error.getErrorClass() == error.getCondition()


def test_its_values_are_the_parameters_of_the_message():
    error = raised(NotFound("no such version", code="missing-version", version=7), "load")
    assert isinstance(error, AnalysisException)
    assert error.getMessageParameters() == {"userVersion": "7"}


def test_what_delta_spark_has_not_stays_ours():
    given = InvalidRequest("no", code="unknown-lane")
    assert raised(given) is given
    assert not isinstance(given, PySparkException)


def test_other_formats_stay_ours():
    given = NotFound("no", code="not-a-table")
    assert raised(given, "load", "Paimon") is given


def test_conflicts_are_what_delta_exceptions_has():
    conflict = Conflict("concurrent-append", 3, "WRITE", "rows came")
    error = raised(CommitConflict("lost", code="concurrent-append", conflicts=[conflict], attempts=2))
    assert isinstance(error, ConcurrentAppendException)
    assert isinstance(error, DeltaConcurrentModificationException)
    assert (error.conflicts, error.attempts) == ((conflict,), 2)
    assert error.getCondition().startswith("DELTA_CONCURRENT_APPEND")


def test_an_error_goes_through_two_doors_and_through_a_pickle():
    with pytest.raises(InvalidRequest) as caught, counterparts("save"), counterparts("delete"):
        raise InvalidRequest("rows stay", code="append-only", column="a")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert (str(again), again.column, again.getCondition()) == (str(caught.value), "a", caught.value.getCondition())


def test_a_trace_shows_one_error_and_where_it_was_raised():
    def deep() -> None:
        raise InvalidRequest("rows stay", code="append-only")

    with pytest.raises(InvalidRequest) as caught, counterparts("delete"):
        deep()
    text = "".join(traceback.format_exception(caught.value))
    assert text.count("Traceback") == 1
    assert "in deep" in text


def test_methods_of_a_class_are_doors():
    @raises_counterparts()
    class Table:
        @classmethod
        def made(cls) -> None:
            raise InvalidRequest("no", code="append-only")

        def delete(self, condition: str) -> str:
            """Deletes."""
            if condition:
                return condition
            raise InvalidRequest("no", code="append-only")

        def _inner(self) -> None:
            raise InvalidRequest("no", code="append-only")

    assert Table().delete("x") == "x"
    assert Table.delete.__doc__ == "Deletes."
    for call in (lambda: Table().delete(""), Table.made):
        with pytest.raises(UnsupportedOperationException):
            call()
    with pytest.raises(InvalidRequest) as caught:
        Table()._inner()
    assert not isinstance(caught.value, PySparkException)


def test_what_python_says_of_wrong_arguments_has_no_condition():
    given = WrongValue("no", code="append-only")
    assert raised(given) is given


def test_what_spark_says_is_told_on_with_its_condition():
    def told_on(error: Exception) -> None:
        try:
            raise error
        except PySparkException:
            raise InvalidRequest("the condition does not resolve", code="of-spark") from None

    spoken = AnalysisException("no column", errorClass="UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", messageParameters={})
    with pytest.raises(InvalidRequest) as caught, counterparts("delete"):
        told_on(spoken)
    assert isinstance(caught.value, AnalysisException)
    assert caught.value.getCondition() == "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"
    assert str(caught.value).startswith("[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] the condition")


def test_what_the_caller_is_handling_is_not_taken_for_it():
    given = InvalidRequest("no", code="unknown-lane")
    try:
        raise AnalysisException("earlier", errorClass="SOME_CONDITION", messageParameters={})
    except AnalysisException:
        assert raised(given) is given


def test_an_error_that_is_sparks_already_gets_the_condition():
    error = raised(NotATable("no table", code="not-a-table", url="file:/t"), "forPath")
    assert type(error).__mro__.count(AnalysisException) == 1
    assert (error.getCondition(), error.getMessageParameters()) == (
        "DELTA_MISSING_DELTA_TABLE",
        {"tableName": "file:/t"},
    )
