"""Where the command `alluvium` begins: what must be settled before the first library is loaded."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

#: New objects before Python looks for those that nobody needs.
_OBJECTS = 50_000


class WithoutPandas:
    """As if pandas were not installed.

    pyarrow asks of each Python value that it is given whether pandas made it, and loads pandas in order to ask: more
    than half of the time in which a command answers. No command has anything to do with pandas.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=fullname)
        return None


def main() -> None:
    """Runs the command that the process was started with, and ends the process."""
    sys.meta_path.insert(0, WithoutPandas())
    # What is loaded stays, and to look for what could go each 700 objects takes a tenth of the time of loading.
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    # pyarrow before msgspec: that one loads typing_extensions, which replaces a part of `typing` by Python code, and
    # numpy, which pyarrow loads, makes hundreds of types: 0.06 s of the 0.42 in which a command answered.
    importlib.import_module("pyarrow.compute")
    importlib.import_module("alluvium.cli.app").main()
