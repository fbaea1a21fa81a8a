"""Makes bad calls in one engine, and tells what was raised: class, condition, SQL state, text.

Imported by the project's tests, and by the reference engine's Python (reference_server.py).
"""

import importlib
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from errors import reads, verbs, writes  # noqa: F401  # they register themselves
from errors.place import CALLS, Place, make_tables

#: In texts, where an exception has no condition to ask for.
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]")
_JAVA = re.compile(r"^(?:[a-z][\w$]*\.)+[A-Z][\w$]*", re.MULTILINE)


def told(error: BaseException) -> dict:
    """What `except` clauses and matching texts can see of an error."""
    text = str(error)
    condition = error.getCondition() if hasattr(error, "getCondition") else None
    in_text = _CONDITION.search(text)
    java = _JAVA.search(text) if type(error).__name__ == "Py4JJavaError" else None
    return {
        "classes": [c.__name__ for c in type(error).__mro__],
        "condition": condition or (in_text[1] if in_text else None),
        "state": error.getSqlState() if hasattr(error, "getSqlState") else None,
        "parameters": sorted((error.getMessageParameters() or {}) if hasattr(error, "getMessageParameters") else []),
        "java": java[0] if java else None,
        "text": text.split("\n\nJVM stacktrace")[0][:600],
        "code": getattr(error, "code", None),
    }


def make_calls(spark, delta, root: Path, alters: bool, names=()) -> dict:
    """By call: what came of it; None where nothing was raised."""
    place = Place(spark, delta, root, alters)
    make_tables(place)
    answers = {}
    for name, function in CALLS.items():
        if names and name not in names:
            continue
        try:
            function(place)
            answers[name] = None
        except Exception as error:  # the engine's verdict is data here
            answers[name] = told(error)
    spark.sql("drop table if exists errors_there")
    return answers


def run(spark, job: dict) -> dict:
    """A job of reference_server.py."""
    return make_calls(spark, importlib.import_module("delta.tables"), Path(job["root"]), True, job.get("names", ()))
