"""The front door: the names that `alluvium` exports, and what importing it costs (API.md)."""

from __future__ import annotations

import os
import subprocess
import sys

import alluvium
from alluvium import errors

#: What users import. A name enters or leaves this list by decision, with a line in CHANGELOG.md.
EXPORTED = {
    "Committed",
    "DeltaMergeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "Preview",
    "RetryPolicy",
    "Table",
    "alter",
    "changes",
    "disable",
    "enable",
    "errors",
    "explain",
    "install_as_delta",
    "open",
    "paimon",
    "progress",
    "read",
    "write",
}

#: The tree that callers may rely on (API.md section 5).
ERRORS = {
    "AlluviumError",
    "CommitConflict",
    "CommitUnknown",
    "CorruptTable",
    "InvalidRequest",
    "NotFound",
    "StorageError",
    "UnsupportedFeature",
    "WrongType",
}


def test_the_exported_names_are_pinned():
    assert set(alluvium.__all__) == EXPORTED
    assert list(alluvium.__all__) == sorted(alluvium.__all__)


def test_every_exported_name_exists_and_is_documented():
    assert not [name for name in alluvium.__all__ if not getattr(alluvium, name).__doc__]


def test_the_error_tree_is_complete():
    tree = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert tree == ERRORS


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env).stdout


def test_import_loads_no_library():
    code = "import sys, alluvium; print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    # Installed environments load names of their own, such as _distutils_hack, before anything is imported.
    before = "import sys; print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    assert set(fresh(code).split()) - set(fresh(before).split()) == {"alluvium"}
