"""What is still to be done when a commit stands: nothing that goes wrong in it may look like a failed commit."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable

log = logging.getLogger("alluvium")


def afterwards(standing: str, what: str, act: Callable[[], object]) -> None:
    """Does something that is due after a commit.

    A caller who is told of an error commits the same rows again. So an error of whatever kind, of ours or of a library,
    becomes a warning, and a line of the log for those who do not see warnings or turn them into errors. Somebody who
    interrupts the program is obeyed, and told what stands.

    Args:
        standing: What stands: `"version 5 of file:/t"`.
        what: What is due: `"checkpoint"`.
        act: Does it.
    """
    try:
        act()
    except Exception as error:
        message = f"{standing} is committed, its {what} is not: {error}"
        log.warning("%s", message, exc_info=error)
        try:
            warnings.warn(message, stacklevel=4)
        except Warning:
            # Who turns warnings into errors does not mean to have a commit called a failure; the log has told of it.
            return
    except BaseException as error:
        told(error, f"{standing} is committed, its {what} was interrupted")
        raise


def told(interrupt: BaseException, note: str) -> None:
    """Says with an interrupt, and in the log, what has become of a commit."""
    log.warning("%s", note)
    if hasattr(interrupt, "add_note"):
        interrupt.add_note(note)
