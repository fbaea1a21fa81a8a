"""What the fuzzer gives bytes to: by name seeds, and a function that reads bytes where they come in from outside.

Only errors of ours may come out. `TARGETS` makes a target when it is asked for: tables, stores and decoders that do not
change are made once, so that an input costs little.
"""

from __future__ import annotations

import importlib
import sys
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzz_footers import changed_footer
from fuzz_mutations import _BYTES, _JSON

from alluvium.errors import AlluviumError

#: Inputs are no longer than this, unless a seed is.
MAX_BYTES = 16 << 10


class Forbidden(BaseException):
    """Something that no reader of bytes has to do: a process, a connection, a file."""


@dataclass(frozen=True)
class Target:
    """One of the functions.

    Attributes:
        name: As the command line calls it.
        seeds: Whole inputs, made by writers of this project.
        act: Reads an input; gives a word for what became of it.
    """

    name: str
    seeds: Sequence[bytes]
    act: Callable[[bytes], str]

    def play(self, data: bytes) -> str:
        """`ok`, another word of the function's, or the code of an error of ours."""
        _WATCH.on = True
        try:
            return self.act(data)
        except AlluviumError as error:
            str(error)
            return error.code
        finally:
            _WATCH.on = False


#: The module that makes each target: it alone is loaded, for what is loaded is instrumented, and that takes long.
_MODULES: Mapping[str, str] = {
    **dict.fromkeys((
        "delta-changes", "delta-checkpoint", "delta-checksum", "delta-commit", "delta-compaction", "delta-first-commit",
        "delta-history", "delta-json-head", "delta-large-checkpoint", "delta-last-checkpoint", "delta-offset",
        "delta-parquet-head", "delta-partition-values", "delta-properties", "delta-schema", "delta-sidecar",
        "delta-statistics", "delta-tracking-log", "delta-vector", "delta-vector-file", "delta-z85",
    ), "fuzz_targets_delta"),
    **dict.fromkeys((
        "avro-container", "avro-rows", "avro-schema", "binary-row", "bitmap", "blob-file", "orc-footer", "orc-rows",
        "parquet-footer", "parquet-page-index", "parquet-pages", "parquet-rows", "variant", "variant-shredded",
    ), "fuzz_targets_files"),
    **dict.fromkeys((
        "paimon-consumer", "paimon-hashes", "paimon-index-manifest", "paimon-manifest", "paimon-manifest-list",
        "paimon-offset", "paimon-planned", "paimon-schema", "paimon-snapshot", "paimon-table-schema", "paimon-tag",
        "paimon-type-json", "paimon-vector", "paimon-vector-file",
    ), "fuzz_targets_paimon"),
    **dict.fromkeys(("delta-small-files", "paimon-small-files"), "fuzz_targets_small"),
    **dict.fromkeys((
        "ddl", "paimon-duration", "paimon-type", "path-text", "sql-condition", "sql-statement", "sql-value", "time-text",
    ), "fuzz_targets_text"),
}  # fmt: skip

NAMES = tuple(sorted(_MODULES))


def make_target(name: str) -> Target:
    """A target; only its own module is loaded."""
    warnings.simplefilter("ignore")
    seeds, act = importlib.import_module(_MODULES[name]).MAKERS[name]()
    return Target(name, tuple(seeds), act)


# -- what must not happen ---------------------------------------------------------------------------------------------

#: Of the interpreter's audit events those that nobody causes who reads bytes out of memory.
_FORBIDDEN = frozenset({
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "socket.getaddrinfo",
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree", "pickle.find_class",
})  # fmt: skip
#: Where the interpreter and its libraries read their own parts.
_OWN_FILES = (
    sys.prefix, sys.base_prefix, "/usr", "/etc/localtime", "/proc/", "/dev/null", str(Path(__file__).parents[2]),
)  # fmt: skip


#: What the interpreter does there when it loads a module, time zones among them, and keeps it compiled.
_OF_FILES = frozenset({"open", "os.mkdir", "os.rename"})


class _Watch:
    on = False

    def __call__(self, event: str, told: tuple[object, ...]) -> None:
        if not self.on:
            return
        is_own = event in _OF_FILES and isinstance(told[0], str) and told[0].startswith(_OWN_FILES)
        if event in _FORBIDDEN and not is_own:
            raise Forbidden(f"{event} {told}")
        if event == "open" and isinstance(told[0], str) and not is_own:
            raise Forbidden(f"open {told}")


_WATCH = _Watch()
sys.addaudithook(_WATCH)


# -- inputs -----------------------------------------------------------------------------------------------------------


def mutated(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """An input changed a little, as the fuzzer of whole tables changes files."""
    if random.random() < 0.3 and (footer := changed_footer(data, random)) is not None:
        return footer
    files = {"x": data, "y": random.choice(others)}
    for _ in range(random.choice((1, 1, 2, 3))):
        is_json = data.lstrip()[:1] == b"{"
        change = random.choice(_JSON if is_json and random.random() < 0.7 else _BYTES)
        try:
            change(files, "x", random)
        except (RecursionError, ValueError):
            # Documents that are too deep to be written again.
            continue
        if "x" not in files:
            return b""
    return files["x"][: 4 * MAX_BYTES]


def structural(data: bytes, seed: int) -> bytes | None:
    """One change of a JSON document, or some of a footer; None: the input has neither."""
    random = Random(seed)
    if data.lstrip()[:1] != b"{":
        return changed_footer(data, random)
    files = {"x": data}
    try:
        random.choice(_JSON)(files, "x", random)
    except (RecursionError, ValueError):
        # Documents that are too deep to be written again.
        return None
    return files["x"]


def new_name() -> str:
    """Of a store in memory that nobody else has."""
    return uuid.uuid4().hex
