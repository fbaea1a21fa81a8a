"""The version of delta-spark whose Python API is followed."""

from __future__ import annotations

__version__ = "4.4.0"
