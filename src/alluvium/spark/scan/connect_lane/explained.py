"""What `explain` of a Spark Connect server prints, taken apart: all that it tells of a plan that it has analysed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alluvium.spark.scan.connect_lane.marks import Mark, marks_in
from alluvium.storage.paths import Url, split_url
from alluvium.storage.places import matches, without_links

_ANALYSED, _NEXT = "== Analyzed Logical Plan ==\n", "\n== Optimized Logical Plan =="
#: Three characters a level; then the name of the node.
_BRANCH = re.compile(r"(?:[ :]  )*[:+]- ")
#: `spark.sql.maxPlanStringLength`, `spark.sql.redaction.string.regex`.
_CUT = re.compile(r"\.\.\. \d+ more characters\s*\Z|Truncated plan of \d+ characters\s*\Z|\*{9}\(redacted\)")
#: A leaf that is neither rows of the client nor a name for a part of the plan.
_RELATION = re.compile(r"(?:[ :]  )*(?:[:+]- )?(?!LocalRelation|OneRowRelation|CTERelation)\w*Relation\w*\b")
#: As `marks.marked` comes back.
_MARKED = re.compile(r"(?:[ :]  )*(?:[:+]- )?Filter isnotnull\(([^()\s]+)\)$")
#: `RelationV2[id#0L] name`
_SOURCE = re.compile(r"RelationV2\[.*\] (?:.* )?([^\s\]]+)")
_PATTERN = re.compile(r"[*?{\[\\]")
#: A path of a disk, as far as it has none of the characters that may stand around one.
_PATH = re.compile(r"/[^\s,;:'\"`()\[\]{}]+")
_FURTHER = re.compile(r"^Location: .*, \.\.\. \d+ entries\]$", re.MULTILINE)
_LOCATION = re.compile(r"^Location: [^\[\n]*\[([^\n]*)\]$", re.MULTILINE)


def analysed_tree(text: str) -> tuple[str, ...] | None:
    """The lines of the analysed plan in an extended explanation; None where it is not all there.

    The first node may take several lines, if a text in it does, and so may any other.
    """
    start, end = text.find(_ANALYSED), text.rfind(_NEXT)
    if start < 0 or end < start or _CUT.search(text):
        return None
    # Before the tree stands the schema, in a line.
    lines = text[start + len(_ANALYSED) : end].rstrip("\n").split("\n")[1:]
    return tuple(lines) or None


def is_over_rows(tree: tuple[str, ...], node: str) -> bool:
    """Whether a tree is a node over rows that the client has sent, with no subquery in it.

    A text in the node may have lines of its own: only the last line is certainly not one of these.

    Args:
        tree: As of `analysed_tree`.
        node: What it is called.
    """
    return tree[-1].startswith("+- LocalRelation ") and is_without_subquery(tree, node)


def is_without_subquery(tree: tuple[str, ...], node: str) -> bool:
    """Whether a tree is a node that has no subquery in it, whatever is below it.

    Args:
        tree: As of `analysed_tree`.
        node: What it is called.
    """
    return tree[0].startswith(f"{node} ") and not any(line.startswith(":") for line in tree)


def marks(tree: tuple[str, ...]) -> Iterator[Mark]:
    """The marks of a tree."""
    return filter(None, map(_mark_of, tree))


def _mark_of(line: str) -> Mark | None:
    found = _MARKED.match(line)
    known = () if found is None else marks_in(found[1])
    return known[0] if known else None


def unmarked(tree: tuple[str, ...]) -> Iterator[str]:
    """The lines that do not stand below a mark."""
    marked_depth: int | None = None
    for line in tree:
        branch = _BRANCH.match(line)
        depth = 0 if branch is None else branch.end()
        if marked_depth is not None and depth > marked_depth:
            continue
        marked_depth = None if _mark_of(line) is None else depth
        if marked_depth is None:
            yield line


def relations(lines: Iterator[str]) -> tuple[str, ...]:
    """Those lines that are relations of files or of other sources."""
    return tuple(line for line in lines if _RELATION.match(line))


def source_name(relation: str) -> str | None:
    """What a relation of the second kind of sources is called; None: it is of the first."""
    found = _SOURCE.search(relation)
    return None if found is None else found[1]


def names_place(text: str, url: str) -> bool:
    """Whether a text, as a formatted explanation, speaks of files at a URL, or may: of the files of a scan Spark prints
    the first address.
    """
    for place in {_place(split_url(url)), _place(without_links(url))}:
        if re.search(rf"{re.escape(place)}(?![\w.\-])", text):
            return True
    return any(meets(address, url) for address in _addresses(text))


def _addresses(text: str) -> Iterator[str]:
    """Addresses that an explanation has: the first of each scan, and paths that stand for others."""
    for listed in _LOCATION.findall(text):
        yield from (first for first in listed.split(", ")[:1] if first)
    for path in _PATH.findall(text):
        if str(without_links(path)) != path:
            yield path


def leaves_out_addresses(text: str) -> bool:
    """Whether a formatted explanation names only the first of several addresses of a scan."""
    return _FURTHER.search(text) is not None


def meets(address: str, url: str) -> bool:
    """Whether what lies at an address, or below it, may be of what lies at a URL: also as a pattern of names."""
    first = _PATTERN.split(address, maxsplit=1)[0]
    start, place = _place(without_links(first or "/")), _place(without_links(url or "/"))
    if not start.startswith("/") and "://" not in address:
        # Below a folder that only the server knows.
        return place.rpartition("/")[2] in start.split("/") or f"/{start}/" in f"{place}/"
    if first == address:
        return _meet(start, place)
    # Of the names that it stands for some may be links.
    return (
        place.startswith(start)
        or start.startswith(f"{place}/")
        or any(_meet(_place(without_links(path)), place) for path in matches(address))
    )


def _meet(start: str, place: str) -> bool:
    return start == place or start.startswith(f"{place}/") or place.startswith(f"{start.rstrip('/')}/")


def _place(address: Url) -> str:
    """An address without its scheme, of which there are several for one store."""
    return f"{address.authority}{address.path}"
