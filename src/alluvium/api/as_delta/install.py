"""install_as_delta(): programs that were written for delta-spark run on Alluvium, unchanged."""

from __future__ import annotations

import sys

from alluvium.api.as_delta.hooks import hook_sessions
from alluvium.api.as_delta.modules import MODULES, DeltaFinder
from alluvium.errors import InvalidRequest


def install_as_delta() -> None:
    """Makes `import delta` and its modules Alluvium's, and enables every Spark session, also the one there is.

    To be called before anything imports `delta`: at the top of the program. From then on, in this process,

    - `delta`, `delta.tables`, `delta.exceptions`, `delta.pip_utils` have delta-spark's names, whether or not
      delta-spark is installed;
    - sessions start without the JAR: settings that name it, or classes in it, are left out, be they said to a
      builder, to a `SparkConf`, or in `PYSPARK_SUBMIT_ARGS`; what else is in these settings stays;
    - sessions are enabled (`alluvium.enable`), those of `newSession()`, too.

    May be called again. There is no way back in a running program.

    Raises:
        InvalidRequest: delta-spark's own modules have been imported already (`delta-imported`): names taken from them
            would go on to need the JAR.

    Example:
        >>> import alluvium
        >>> alluvium.install_as_delta()
        >>> from delta.tables import DeltaTable
    """
    if not any(isinstance(finder, DeltaFinder) for finder in sys.meta_path):
        foreign = sorted(name for name in MODULES if name in sys.modules)
        if foreign:
            raise InvalidRequest(
                f"{foreign[0]} has been imported already, from {_origin(foreign[0])}",
                code="delta-imported",
                hint="call alluvium.install_as_delta() before the first import of delta",
            )
        sys.meta_path.insert(0, DeltaFinder())
    hook_sessions()


def _origin(name: str) -> str:
    return str(getattr(sys.modules[name], "__file__", None) or "elsewhere")
