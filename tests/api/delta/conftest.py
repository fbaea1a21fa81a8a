"""Others that act while a verb runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from alluvium.delta.write.target import DeltaTarget


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Lets somebody else act between what a verb reads and its commit, once."""
    pending: list[Callable[[], object]] = []
    commit = DeltaTarget.commit

    def interrupted(self: DeltaTarget, changes: object) -> object:
        if pending and getattr(changes, "touched", None) is not None:
            pending.pop()()
        return commit(self, changes)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaTarget, "commit", interrupted)
    return pending.append
