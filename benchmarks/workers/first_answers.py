"""What a new process answers first: libraries are loaded within the time."""

from __future__ import annotations

import subprocess
import sys


def answer_of(code: str, path: str) -> str:
    """What a program prints, of which `{!r}` is the table's path."""
    done = subprocess.run([sys.executable, "-c", code.format(path)], capture_output=True, check=True, text=True)
    return done.stdout.strip()
