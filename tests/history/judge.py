"""Whether a history is that of a serial order: what each commit did must follow from what it read, and be said once."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from history.acts import Act, Change, Key, Value, act_of, effect, first_rows
from history.replay import Broken, Log, Version

#: Kinds of writers that are ours: what they fail with, beside a lost race, is a finding.
OURS = frozenset({"python", "spark"})
#: How many versions back a commit may have been begun; the rows of older ones are not kept.
KEPT = 1_000


@dataclass
class Verdict:
    """What was found.

    Attributes:
        commits: By kind of writer and verb.
        reordered: Commits that stand behind blind appends which they did not see, as `WriteSerializable` allows.
        rebased: Commits on top of others that came after the version they were made on.
        told: What became of acts by the writers' own words, by kind of writer.
        problems: What no serial order explains.
    """

    commits: Counter[str] = field(default_factory=Counter)
    reordered: int = 0
    rebased: int = 0
    told: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Judge:
    """Replays one history.

    Args:
        root: The table.
        notes: A folder with a file for each writer: what it began (`+ n`), and what came of it (`= n word`).
        kinds: Of which kind each writer is.
    """

    def __init__(self, root: Path, notes: Path, kinds: dict[int, str]) -> None:
        self._log, self._notes, self._kinds = Log(root), notes, kinds
        self._state: dict[Key, Value] = {}
        #: Rows after each version, and those that a blind append brought with it.
        self._states: dict[int, dict[Key, Value]] = {}
        self._blind: dict[int, set[Key]] = {}
        #: At which version each act stands.
        self._found: dict[tuple[int, int], int] = {}
        #: Versions that move no row.
        self._idle = set[int]()
        self._newest: dict[int, int] = defaultdict(lambda: -1)
        self.verdict = Verdict()

    def judge(self) -> Verdict:
        """All versions, then what writers say of themselves."""
        try:
            for version in self._log.versions():
                self._judge_version(version)
        except Broken as error:
            self.verdict.problems.append(str(error))
        else:
            self._compare_notes()
        return self.verdict

    def _judge_version(self, version: Version) -> None:
        change = self._change(version)
        note = version.info.get("userMetadata")
        if version.number == 0:
            if change != first_rows():
                self._report(version, None, "the table does not begin as it should")
        elif note is None:
            if change or version.data_change:
                self._report(version, None, f"changes rows, and nobody says so: {version.info}")
        else:
            self._judge_act(version, act_of(note), change)
        for key, value in change.items():
            if value is None:
                del self._state[key]
            else:
                self._state[key] = value
        self._states[version.number] = dict(self._state)
        self._states.pop(version.number - KEPT, None)

    def _change(self, version: Version) -> Change:
        """What is different; each row is there once."""
        change: Change = {}
        for (key, value), count in version.went.items():
            if count > 1 or self._state.get(key) != value:
                self._report(version, None, f"{key} went {count} times, or was not there")
            elif key in self._state:
                change[key] = None
        for (key, value), count in version.came.items():
            if count > 1 or (key in self._state and key not in change) or change.get(key) is not None:
                self._report(version, None, f"{key} stands twice")
            change[key] = value
        return change

    def _judge_act(self, version: Version, act: Act, change: Change) -> None:
        kind = self._kinds.get(act.writer, "?")
        self.verdict.commits[f"{kind}: {act.verb}"] += 1
        if (act.writer, act.n) in self._found:
            self._report(version, act, f"stands at version {self._found[act.writer, act.n]} already")
        if act.n <= self._newest[act.writer]:
            self._report(version, act, "comes behind what its writer did later")
        self._found[act.writer, act.n] = version.number
        if not change and not version.data_change:
            self._idle.add(version.number)
        self._newest[act.writer] = max(act.n, self._newest[act.writer])
        if act.verb == "append":
            self._blind[version.number] = set(change)
        if act.verb == "describe" and self._log.properties.get(f"writer{act.writer}") != str(act.n):
            self._report(version, act, "does not say what it was to say")
        self._judge_effect(version, act, change)

    def _judge_effect(self, version: Version, act: Act, change: Change) -> None:
        read = version.info.get("readVersion")
        if read is not None and not 0 <= read < version.number:
            return self._report(version, act, f"says that it read version {read}")
        base = version.number - 1 if read is None else read
        self.verdict.rebased += base < version.number - 1
        if base in self._states and effect(act, self._states[base]) != change:
            return self._report(version, act, f"does not follow from version {base}, which it says it read: {change}")
        if effect(act, self._state) == change:
            return None
        unseen = set[Key]().union(*(self._blind.get(n, ()) for n in range(base + 1, version.number)))
        seen = {key: value for key, value in self._state.items() if key not in unseen}
        isolation = self._log.properties.get("delta.isolationLevel", "WriteSerializable")
        if isolation == "WriteSerializable" and effect(act, seen) == change:
            self.verdict.reordered += 1
            return None
        return self._report(version, act, f"({isolation}) is not what a serial order gives after {base}: {change}")

    def _compare_notes(self) -> None:
        """What is done stands; what was refused does not. Who was killed may have committed, or not."""
        for writer, kind in self._kinds.items():
            for n, word in read_notes(self._notes / str(writer)).items():
                self.verdict.told[f"{kind}: {word.split(':')[0]}"] += 1
                stands = (writer, n) in self._found
                if word.startswith("error") and kind in OURS:
                    self.verdict.problems.append(f"act {n} of writer {writer} ({kind}): {word}")
                if word == "done" and not stands:
                    self.verdict.problems.append(f"act {n} of writer {writer} ({kind}) was done, and is lost")
                # delta-spark commits what moves no row, too.
                is_right = word == "nothing" and stands and self._found[writer, n] in self._idle
                if word in ("conflict", "nothing") and stands and not is_right:
                    where = self._found[writer, n]
                    self.verdict.problems.append(f"act {n} of writer {writer} ({kind}): {word}, but version {where}")
        begun = {(writer, n) for writer in self._kinds for n in read_notes(self._notes / str(writer))}
        for writer, n in set(self._found) - begun:
            self.verdict.problems.append(f"act {n} of writer {writer} was never begun")

    def _report(self, version: Version, act: Act | None, what: str) -> None:
        by = "" if act is None else f" ({self._kinds.get(act.writer, '?')}, {act})"
        self.verdict.problems.append(f"version {version.number}{by}: {what}")


def read_notes(file: Path) -> dict[int, str]:
    """What became of each act that a writer has begun; `killed` where it did not come to say it."""
    found: dict[int, str] = {}
    # A writer may have died within a line.
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    for line in lines:
        mark, _, rest = line.partition(" ")
        n, _, word = rest.partition(" ")
        if n.isdigit() and mark in ("+", "="):
            found[int(n)] = word if mark == "=" else "killed"
    return found
