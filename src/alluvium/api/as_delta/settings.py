"""Settings of Spark that name Delta's JAR, or classes in it, and what is left of them without it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

PACKAGES = "spark.jars.packages"
#: Of `io.delta` all but Delta Sharing, which is another matter.
_PACKAGE = re.compile(r"io\.delta:delta-(?!sharing).*")
_FILE = re.compile(r"(.*/)?delta-(?!sharing)(core|spark|storage|connect|contribs|iceberg|hudi)[\w.-]*\.jar")
_CLASS = re.compile(
    r"(io\.delta|org\.apache\.spark\.sql\.delta|org\.apache\.spark\.sql\.connect\.delta)\.(?!sharing).*"
)
#: Settings that are lists, and what in them is the JAR's.
_LISTS: Mapping[str, re.Pattern[str]] = {
    PACKAGES: _PACKAGE,
    "spark.jars": _FILE,
    "spark.sql.extensions": _CLASS,
    "spark.connect.extensions.relation.classes": _CLASS,
    "spark.connect.extensions.expression.classes": _CLASS,
    "spark.connect.extensions.command.classes": _CLASS,
}
#: A catalog is one class; of a catalog there may be other settings below its name.
_CATALOG = re.compile(r"spark\.sql\.catalog\.[^.]+")
#: Options of spark-submit that are lists, as settings.
_FLAGS = {"--packages": PACKAGES, "--jars": "spark.jars"}


def without_jar(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings without what is of the JAR. Other entries of lists stay, in order; values stay as they are."""
    kept: dict[str, object] = {}
    for name, value in settings.items():
        left = left_of(name, str(value))
        if left is None:
            continue
        kept[name] = value if left == str(value) else left
    return kept


def left_of(name: str, value: str) -> str | None:
    """What is left of a setting; None: nothing, or a catalog that is a class of the JAR."""
    if name in _LISTS:
        entries = [entry.strip() for entry in value.split(",")]
        others = [entry for entry in entries if _LISTS[name].fullmatch(entry) is None]
        if len(others) == len(entries):
            return value
        return ",".join(others) or None
    if _CATALOG.fullmatch(name) and _CLASS.fullmatch(value.strip()):
        return None
    return value


def submit_args_without_jar(text: str) -> str:
    """`PYSPARK_SUBMIT_ARGS` without what is of the JAR: `--packages`, `--jars`, `--conf`."""
    words = iter(shlex.split(text))
    return shlex.join([kept for word in words for kept in _kept_words(word, words)])


def _kept_words(word: str, following: Iterator[str]) -> list[str]:
    """A flag with its value, as far as it stays; other words as they are."""
    flag, equals, joined = word.partition("=")
    if flag not in _FLAGS and flag not in ("--conf", "-c"):
        return [word]
    value = joined if equals else next(following, "")
    if flag in _FLAGS:
        left = left_of(_FLAGS[flag], value)
        return [] if left is None else [flag, left]
    name, _, said = value.partition("=")
    left = left_of(name, said)
    return [] if left is None else [flag, f"{name}={left}"]
