"""What can happen to the bytes of a table: random, but the same for the same seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

Files = dict[str, bytes]

#: Values that stand where another was expected.
_STRANGE: tuple[object, ...] = (
    None, True, False, 0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**40, 1.5,
    1e308, float("nan"), float("inf"), float("-inf"), "", " ", "\0", "a\0b", "null", "NaN", "é\u2028", "\U0001f30a", "ſ", "../x", "/etc/passwd",
    "file:///etc/passwd", "http://127.0.0.1:1/x.parquet", "s3://nobody/x.parquet", "%2e%2e%2fx", "%zz", "9999-99-99", "-290308-12-21", "294247-01-10",
    "+10000-01-01", "0000-00-00", "1e999999999", "9" * 400, "x" * 70_000, "i", "u", "p", "struct", "array", "map", "decimal(39,0)",
    "decimal(-1,0)", "decimal(10,99)", "void", "variant", "interval", "parquet", "orc", [], {}, [[]], [None], {"": None}, {"a": {"b": {}}},
)  # fmt: skip


def mutate(files: Files, random: Random) -> tuple[Files, list[str], list[str]]:
    """A copy with one to three mutations, what they were, and the paths they touched."""
    made, told, touched = dict(files), [], []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        paths = sorted(made)
        logs = [path for path in paths if "_delta_log" in path or path.endswith(".bin")]
        path = random.choice(logs if logs and random.random() < 0.9 else paths)
        mutation = random.choice(_JSON if _is_json(path, made[path]) and random.random() < 0.7 else _BYTES)
        told.append(f"{mutation.__name__.strip('_')} {path}")
        touched.append(path)
        mutation(made, path, random)
    return made, told, touched


def _is_json(path: str, data: bytes) -> bool:
    return path.endswith((".json", ".crc", "_last_checkpoint")) and data.lstrip()[:1] == b"{"


# -- bytes ------------------------------------------------------------------------------------------------------------


def _flip(files: Files, path: str, random: Random) -> None:
    data = bytearray(files[path])
    for _ in range(random.choice((1, 1, 2, 8, 64))):
        if data:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    files[path] = bytes(data)


def _overwrite(files: Files, path: str, random: Random) -> None:
    data = bytearray(files[path])
    start = random.randrange(len(data) + 1)
    length = random.choice((1, 2, 4, 8, 32))
    data[start : start + length] = random.choice((bytes(length), b"\xff" * length, random.randbytes(length)))
    files[path] = bytes(data)


def _truncate(files: Files, path: str, random: Random) -> None:
    files[path] = files[path][: random.randrange(len(files[path]) + 1)]


def _behead(files: Files, path: str, random: Random) -> None:
    files[path] = files[path][random.randrange(len(files[path]) + 1) :]


def _empty(files: Files, path: str, random: Random) -> None:
    files[path] = b""


def _repeat(files: Files, path: str, random: Random) -> None:
    data = files[path]
    start = random.randrange(len(data) + 1)
    end = random.randrange(start, len(data) + 1)
    files[path] = data[:end] + data[start:end] * random.choice((1, 2, 50)) + data[end:]


def _splice(files: Files, path: str, random: Random) -> None:
    """The beginning of one file, the end of another."""
    other = files[random.choice(sorted(files))]
    files[path] = files[path][: random.randrange(len(files[path]) + 1)] + other[random.randrange(len(other) + 1) :]


def _swap(files: Files, path: str, random: Random) -> None:
    other = random.choice(sorted(files))
    files[path], files[other] = files[other], files[path]


def _lose(files: Files, path: str, random: Random) -> None:
    del files[path]


def _double(files: Files, path: str, random: Random) -> None:
    """The same content under the name of another version, or one that is none."""
    name = random.choice((
        "00000000000000000099.json", "00000000000000000006.json", "09223372036854775807.json", "99999999999999999999.json",
        "00000000000000000004.checkpoint.parquet", "00000000000000000003.checkpoint.0000000001.0000000003.parquet",
        "09223372036854775807.checkpoint.parquet", "00000000000000000005.00000000000000000000.compacted.json",
        "00000000000000000001.00000000000000000005.compacted.json", "00000000000000000005.crc", "_last_checkpoint",
        "00000000000000000005.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", "5.json", "00000000000000000000.json.tmp",
    ))  # fmt: skip
    files[f"_delta_log/{name}"] = files[path]


def _white(files: Files, path: str, random: Random) -> None:
    """Byte order marks, other line ends, blank lines, all in one line."""
    data = files[path]
    files[path] = random.choice((
        b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\n\n \t\n"), data.replace(b"\n", b" "),
        data.replace(b"\n", b"\r"), data.decode("latin-1").encode("utf-16"), data.replace(b",", b",\n"), data + b" " * 100_000,
    ))  # fmt: skip


# -- structure --------------------------------------------------------------------------------------------------------


def _json(change: Callable[[dict[str, object], Random], str | None]) -> Callable[[Files, str, Random], None]:
    """A mutation of one line's document, which may give its new text itself."""

    def mutation(files: Files, path: str, random: Random) -> None:
        lines = files[path].split(b"\n")
        full = [number for number, line in enumerate(lines) if line.strip()]
        if not full:
            return
        number = random.choice(full)
        try:
            document = json.loads(lines[number])
        except (ValueError, RecursionError):
            return
        if isinstance(document, dict):
            text = change(document, random)
            lines[number] = (json.dumps(document) if text is None else text).encode("utf-8", "surrogatepass")
            files[path] = b"\n".join(lines)

    mutation.__name__ = change.__name__
    return mutation


def _holders(node: object, found: list[tuple[object, object]] | None = None) -> list[tuple[object, object]]:
    """Every place in a document: what holds it, and its key or index."""
    found = [] if found is None else found
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in members:
        found.append((node, key))
        _holders(value, found)
    return found


def _within_text(document: dict[str, object], change: Callable[[object], None], random: Random) -> None:
    """JSON within JSON: the schema, statistics, domains."""
    places = [
        (holder, key) for holder, key in _holders(document) if isinstance(holder[key], str) and holder[key][:1] == "{"
    ]  # type: ignore[index]
    if not places:
        change(document)
        return
    holder, key = random.choice(places)
    try:
        inner = json.loads(holder[key])  # type: ignore[index]
    except (ValueError, RecursionError):
        change(document)
        return
    change(inner)
    holder[key] = json.dumps(inner)  # type: ignore[index]


def _value(document: dict[str, object], random: Random) -> None:
    def change(node: object) -> None:
        places = _holders(node)
        if places:
            holder, key = random.choice(places)
            holder[key] = random.choice(_STRANGE)  # type: ignore[index]

    _within_text(document, change, random) if random.random() < 0.5 else change(document)


def _kindred(document: dict[str, object], random: Random) -> None:
    """A strange value of the same type, which the first decoder does not mind."""

    def change(node: object) -> None:
        places = [(h, k) for h, k in _holders(node) if not isinstance(h[k], (dict, list))]  # type: ignore[index]
        if places:
            holder, key = random.choice(places)
            kind = type(holder[key])  # type: ignore[index]
            holder[key] = random.choice([value for value in _STRANGE if type(value) is kind] or [None])  # type: ignore[index]

    _within_text(document, change, random) if random.random() < 0.6 else change(document)


def _missing(document: dict[str, object], random: Random) -> None:
    def change(node: object) -> None:
        places = [(holder, key) for holder, key in _holders(node) if isinstance(holder, dict)]
        if places:
            holder, key = random.choice(places)
            del holder[key]  # type: ignore[attr-defined]

    _within_text(document, change, random) if random.random() < 0.4 else change(document)


def _case(document: dict[str, object], random: Random) -> None:
    places = [(holder, key) for holder, key in _holders(document) if isinstance(holder, dict)]
    if places:
        holder, key = random.choice(places)
        other = random.choice((str(key).upper(), str(key).lower(), str(key) + " ", f"\ufeff{key}"))
        holder[other] = holder.pop(key)  # type: ignore[attr-defined]


def _moved(document: dict[str, object], random: Random) -> None:
    """A value of one place in another."""

    def change(node: object) -> None:
        places = _holders(node)
        if len(places) > 1:
            (first, key), (second, other) = random.choice(places), random.choice(places)
            # Copied: a document that holds itself cannot be written.
            first[key] = json.loads(json.dumps(second[other]))  # type: ignore[index]

    _within_text(document, change, random) if random.random() < 0.5 else change(document)


def _twice(document: dict[str, object], random: Random) -> str | None:
    """A key that stands twice, with another value."""
    places = [(holder, key) for holder, key in _holders(document) if isinstance(holder, dict)]
    if not places:
        return None
    holder, key = random.choice(places)
    marker = "@@twice@@"
    holder[marker] = 0  # type: ignore[index]
    return json.dumps(document).replace(f'"{marker}": 0', f"{json.dumps(key)}: {json.dumps(random.choice(_STRANGE))}")


def _deep(document: dict[str, object], random: Random) -> str | None:
    """One place very deep."""
    places = _holders(document)
    if not places:
        return None
    holder, key = random.choice(places)
    depth = random.choice((50, 99, 101, 500, 5_000, 100_000))
    holder[key] = "@@deep@@"  # type: ignore[index]
    opening, closing = random.choice(
        (("[", "]"), ('{"a":', "}"), ('{"type":"array","containsNull":true,"elementType":', "}"))
    )
    deep = opening * depth + '"long"' + closing * depth
    text = json.dumps(document)
    return text.replace('"@@deep@@"', deep if random.random() < 0.6 else json.dumps(deep))


def _wide(document: dict[str, object], random: Random) -> None:
    def change(node: object) -> None:
        places = [(h, k) for h, k in _holders(node) if isinstance(h[k], (dict, list))]  # type: ignore[index]
        if places:
            holder, key = random.choice(places)
            value = holder[key]  # type: ignore[index]
            if isinstance(value, dict):
                value.update({f"k{i}": random.choice(_STRANGE[:30]) for i in range(random.choice((1, 100, 5_000)))})
            elif value:
                value.extend([value[0]] * random.choice((1, 100, 5_000)))

    _within_text(document, change, random)


def _surrogate(document: dict[str, object], random: Random) -> str | None:
    """Text that is no text."""
    text = json.dumps(document)
    at = random.randrange(len(text))
    return text[:at] + random.choice(("\\ud800", "\ud800", "\\u0000", "\\x", "\x00", "\x1f", "\u202e")) + text[at:]


_BYTES = (_flip, _overwrite, _truncate, _behead, _empty, _repeat, _splice, _swap, _lose, _double, _white)
_JSON = tuple(
    _json(change)
    for change in (
        _value,
        _value,
        _kindred,
        _kindred,
        _kindred,
        _missing,
        _case,
        _moved,
        _twice,
        _deep,
        _wide,
        _surrogate,
    )
)  # type: ignore[arg-type]
