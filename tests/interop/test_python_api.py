"""Classes of `delta.tables` as the installed delta-spark has them: each public method is ours, too, and is called alike."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from reference_engine import REFERENCE

from alluvium.api.as_delta.modules import MODULES
from alluvium.api.delta import delta_columns, delta_merge, delta_table
from alluvium.api.delta.optimize import builder

SOURCES = sorted(Path(REFERENCE).glob("venv/lib/python*/site-packages/delta"))

pytestmark = [pytest.mark.interop, pytest.mark.skipif(not SOURCES, reason="delta-spark is not installed")]

OURS = {
    "DeltaTable": delta_table.DeltaTable,
    "DeltaTableBuilder": delta_table.DeltaTableBuilder,
    "DeltaMergeBuilder": delta_merge.DeltaMergeBuilder,
    "DeltaOptimizeBuilder": builder.DeltaOptimizeBuilder,
    "IdentityGenerator": delta_columns.IdentityGenerator,
}
#: What has another default here, and why.
ELSE = {"forPath(hadoopConf)": "a dict that all calls share is None here"}
NOTHING = object()


def _tree(name: str) -> ast.Module:
    return ast.parse((SOURCES[-1] / name).read_text(encoding="utf-8"))


def _theirs() -> list[tuple[str, ast.FunctionDef]]:
    """Class and method; of one that is overloaded the last, which is the one that runs."""
    found: dict[tuple[str, str], ast.FunctionDef] = {}
    for owner in _tree("tables.py").body if SOURCES else ():
        if isinstance(owner, ast.ClassDef):
            found |= {
                (owner.name, m.name): m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name[0] != "_"
            }
    return [(owner, method) for (owner, _), method in found.items()]


METHODS = _theirs()


@pytest.mark.parametrize(("owner", "method"), METHODS, ids=[f"{owner}.{method.name}" for owner, method in METHODS])
def test_a_method_is_called_alike(owner: str, method: ast.FunctionDef):
    parameters = list(inspect.signature(getattr(OURS[owner], method.name)).parameters.values())
    ours = {p.name: p.default for p in parameters if p.name not in ("self", "cls") and p.kind is not p.KEYWORD_ONLY}
    names = [a.arg for a in method.args.args if a.arg not in ("self", "cls")]
    if method.args.vararg is not None:
        ours.pop(next(p.name for p in parameters if p.kind is p.VAR_POSITIONAL))
    # What is ours alone stands behind, so that arguments by position mean the same.
    assert list(ours)[: len(names)] == names
    assert all(default is not inspect.Parameter.empty for default in list(ours.values())[len(names) :])
    given = [NOTHING] * (len(names) - len(method.args.defaults)) + method.args.defaults
    for name, default in zip(names, given, strict=True):
        # What must be given there may be left out here.
        if default is not NOTHING and f"{method.name}({name})" not in ELSE:
            assert ours[name] == ast.literal_eval(default), name


def test_identity_generators_have_their_fields():
    (theirs,) = (c for c in _tree("tables.py").body if isinstance(c, ast.ClassDef) and c.name == "IdentityGenerator")
    fields = [(f.target.id, ast.literal_eval(f.value)) for f in theirs.body if isinstance(f, ast.AnnAssign)]
    ours = inspect.signature(delta_columns.IdentityGenerator).parameters.values()
    assert [(p.name, p.default) for p in ours] == fields


@pytest.mark.parametrize(
    "file", ["__init__", "tables", "pip_utils", "version", "exceptions/__init__", "exceptions/base"]
)
def test_public_names_of_modules_are_there(file: str):
    module = "delta" if file == "__init__" else "delta." + file.removesuffix("/__init__").replace("/", ".")
    names = set()
    for node in _tree(f"{file}.py").body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {a.asname or a.name for a in node.names if (node.module or "").startswith("delta")}
        elif isinstance(node, ast.Assign):
            names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    assert {name for name in names if name[0] != "_" or name == "__version__"} - set(MODULES[module]) == set()
