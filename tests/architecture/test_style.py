"""Rules of HOUSE section 7 that no linter knows: names, docstrings, words that a room may not say, swallowed errors."""

from __future__ import annotations

import ast
import re
from pathlib import Path

#: Words that say nothing about what a thing is.
FORBIDDEN_WORDS = {"manager", "helper", "util", "utils", "handler", "factory", "base", "common", "impl", "misc"}

#: Functions whose body runs in a Spark worker, where a module-level import of the driver would be pickled by
#: reference: `(file, function)`. They alone may import inside.
PICKLED_TO_WORKERS: set[tuple[str, str]] = set()

#: Names that Spark's own interfaces fix.
NAMED_BY_OTHERS: set[str] = set()


def words_of(name: str) -> set[str]:
    """The words of a snake_case or CamelCase name, lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_words_of_names_are_found():
    assert words_of("parse_JSONBase") == {"parse", "json", "base"}
    assert words_of("_LogManager2") == {"log", "manager"}
    assert words_of("database") == {"database"}


def test_no_name_says_nothing(sources):
    bad = []
    for source in sources:
        names = [(part, 0) for part in Path(source.place).with_suffix("").parts]
        names += [
            (node.name, node.lineno)
            for node in ast.walk(source.tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        ]
        bad += [
            f"{source.place}:{line} {name}"
            for name, line in names
            if name not in NAMED_BY_OTHERS and words_of(name) & FORBIDDEN_WORDS
        ]
    assert not bad


def test_every_package_says_what_lives_in_it(sources):
    silent = [s.place for s in sources if s.path.name == "__init__.py" and not ast.get_docstring(s.tree)]
    assert not silent


def test_every_folder_with_modules_is_a_package(sources):
    folders = {source.path.parent for source in sources}
    assert not [folder.as_posix() for folder in folders if not (folder / "__init__.py").exists()]


def test_every_module_has_a_docstring(sources):
    assert not [source.place for source in sources if not ast.get_docstring(source.tree)]


def test_spark_knows_no_format(sources):
    said = [
        f"{source.place}:{number} {line.strip()}"
        for source in sources
        if source.place.startswith("src/alluvium/spark/")
        for number, line in enumerate(source.text.splitlines(), 1)
        if re.search(r"delta|paimon", line, re.IGNORECASE)
    ]
    assert not said


def test_no_imports_inside_functions(sources):
    inside = {
        f"{source.place}:{node.lineno} in {function.name}"
        for source in sources
        for function in source.functions()
        if (source.place, function.name) not in PICKLED_TO_WORKERS
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert not inside


def test_the_list_of_pickled_functions_is_true(sources):
    existing = {(source.place, function.name) for source in sources for function in source.functions()}
    assert existing >= PICKLED_TO_WORKERS


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether the handler does nothing at all with the error."""
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in handler.body
    )


def test_no_error_is_swallowed(sources):
    swallowed = [
        f"{source.place}:{node.lineno}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and (node.type is None or swallows(node))
    ]
    assert not swallowed


def test_every_ignore_gives_its_rule_or_reason(all_sources):
    bare = re.compile(r"#\s*(type:\s*ignore|noqa)(?!\[|:)")
    blind = [
        f"{source.place}:{number}"
        for source in all_sources
        for number, line in enumerate(source.text.splitlines(), 1)
        if bare.search(line) and "re.compile" not in line
    ]
    assert not blind


#: Where a name that is written into SQL is one of ours, whatever the table's columns are called.
OWN_NAMES = {
    "src/alluvium/spark/positions.py",
    "src/alluvium/spark/scan/native_lane/masks.py",
    "src/alluvium/spark/scan/native_lane/native.py",
}


def names_given_to_the_parser(tree: ast.AST) -> list[int]:
    """Lines in which a quoted name goes into a text that Spark's parser reads as it is."""
    return [
        call.lineno
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and ast.unparse(call.func).rpartition(".")[2] in ("expr", "selectExpr", "where", "filter", "sql")
        and any(
            isinstance(inner, ast.Call) and ast.unparse(inner.func) in ("quote", "sql_type")
            for text in ast.walk(call)
            if isinstance(text, ast.JoinedStr)
            for inner in ast.walk(text)
        )
        and not any(isinstance(inner, ast.Call) and ast.unparse(inner.func) == "sql_column" for inner in ast.walk(call))
    ]


def test_names_of_a_table_meet_no_parser(sources):
    """Spark puts the environment in place of `${env:X}`, in names as well: `sql_column` writes them so that it cannot."""
    assert names_given_to_the_parser(ast.parse("df.where(f'{quote(a)} > 1')")) == [1]
    assert names_given_to_the_parser(ast.parse("df.where(sql_column(f'{quote(a)} > 1'))")) == []
    found = {source.place: lines for source in sources if (lines := names_given_to_the_parser(source.tree))}
    assert found.keys() <= OWN_NAMES, found


def test_case_is_ignored_as_spark_ignores_it(sources):
    """By lower case: folded, `ß` were `ss`, and two columns of one table the same."""
    assert not [source.place for source in sources if ".casefold" in source.path.read_text()]
