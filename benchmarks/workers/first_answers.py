"""What a new process answers first: libraries are loaded within the time."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: An installed library is compiled when it is installed; this checkout is where an environment forbids that.
COMPILED = Path(tempfile.gettempdir()) / "alluvium-bench-compiled"


def answer_of(code: str, path: str) -> str:
    """What a program prints, of which `{!r}` is the table's path."""
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    around["PYTHONPYCACHEPREFIX"] = str(COMPILED)
    command = [sys.executable, "-c", code.format(path)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=around)
    return done.stdout.strip()
