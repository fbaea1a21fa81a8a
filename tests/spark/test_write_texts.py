"""What is told of a job that failed on the data: the one line of Spark's text that says what is wrong."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from alluvium.errors import InvalidRequest
from alluvium.spark.write import data_error

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/merge.py", line 7, in rows
    columns = [
              ^
  File "/opt/values.py", line 3, in value

    return narrow(found)
{said}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""


class Failed(PySparkException):
    """An error of Spark with a condition, whatever stands in its text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def getCondition(self) -> str:
        return "ANY"

    def __str__(self) -> str:
        return self.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (WORKER.format(said="OverflowError: 3000000000 [BIGINT] is no INT."), "OverflowError: 3000000000 [BIGINT] is no INT"),
        (
            WORKER.format(said="KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n"
                          "Traceback (most recent call last):\n  File \"a\", line 1, in b\n    c[\nValueError: last"),
            "ValueError: last",
        ),
        ('[CAST_OVERFLOW] The value 3L cannot be cast. SQLSTATE: 22003\n== DataFrame ==', "[CAST_OVERFLOW] The value 3L cannot be cast"),
        ("task 0.0 [\nfailed: [CAST_OVERFLOW] The value 3L cannot be cast.\n at x", "[CAST_OVERFLOW] The value 3L cannot be cast"),
        ("all went wrong\nsomewhere", "all went wrong"),
    ],
)  # fmt: skip
def test_the_line_that_says_what_is_wrong(text: str, told: str) -> None:
    error = data_error(Failed(text), "file:/t")
    assert isinstance(error, InvalidRequest) and error.code == "invalid-data"
    assert error.message == f"Spark cannot write the data: {told}"


def test_workers_that_lack_alluvium() -> None:
    error = data_error(Failed(WORKER.format(said="ModuleNotFoundError: No module named 'alluvium'")), "file:/t")
    assert isinstance(error, InvalidRequest) and error.code == "no-alluvium-on-workers"
