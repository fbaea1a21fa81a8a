"""Whether a query keeps state, read from the plan that the server prints.

Names and texts of the query stand in it as they are, over several lines where they have several. What such lines hold
is not to be taken for a node, be it to find state where there is none, or to miss it where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: Nodes that give the same rows whether a stream's come at once or batch by batch. Each has one below it.
_STATELESS = frozenset({
    "Project", "Filter", "SubqueryAlias", "View", "Generate", "Expand", "Repartition", "RepartitionByExpression",
    "RebalancePartitions", "MapInPandas", "MapInArrow", "MapPartitions", "ArrowEvalPython", "BatchEvalPython",
    "EventTimeWatermark", "CollectMetrics", "ResolvedHint", "UnresolvedHint", "Sample",
})  # fmt: skip
_FIRST = re.compile(r"(\w+)(.*)")
#: Any other node: three characters for each above it, of which the last tell whether it is the last one there.
_NODE = re.compile(r"((?:[ :]  )*)([:+]- )(\w+)(.*)")
_LAST = "+- "
#: Where a plan hangs below a node not as its child but in an expression of it: one step further in.
_SUBQUERY = "subquery"
#: Joins with rows that stand still, by the side of the stream.
_LEFT, _RIGHT = ("Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"), ("Inner", "Cross", "RightOuter")


@dataclass(slots=True, eq=False)
class _Node:
    """A node of the plan.

    Attributes:
        name: What it is.
        rest: What is printed behind that.
        depth: How many steps it stands in.
        above: What it hangs below; None: it is the first.
        side: How: as the last child, as one before it, or as a subquery.
        indent: What lines of its children begin with.
        children: How many there are.
        is_full: Whether the last of them has come.
    """

    name: str
    rest: str
    depth: int = 0
    above: _Node | None = None
    side: str = ""
    indent: str = ""
    children: int = 0
    is_full: bool = False

    def __str__(self) -> str:
        return f"{self.name}{self.rest}"[:200]


def kept_by(tree: Sequence[str], mark: str) -> str | None:
    """The first node above a stream's own that may keep state.

    Args:
        tree: The lines of the analysed plan; the first is a node.
        mark: What stands in a line of the stream's own nodes, and in no other.

    Returns:
        Empty: none may. None: the stream is not there, or nodes and texts cannot be told apart.
    """
    places = [n for n, line in enumerate(tree) if mark in line]
    if len(places) > 1:
        # What meets itself meets the rows of other batches, too: a join, a subquery.
        return "the stream stands in it more than once"
    nodes = _nodes(tree)
    if not places or nodes is None or places[0] not in nodes:
        return None
    path = list(_path(nodes[places[0]]))
    # The leaf's own: the columns, and the union with nothing.
    own = next((n for n, node in enumerate(path) if node.name == "Union"), None)
    if own is None:
        return None
    for n, node in enumerate(path[1:], 1):
        side = path[n - 1].side
        if side == _SUBQUERY:
            return f"a subquery of {node}"
        is_join = node.name == "Join" and node.rest.strip().startswith(_RIGHT if side == _LAST else _LEFT)
        if not (is_join or n == own or node.name in _STATELESS):
            return str(node)
        if node.children != (2 if is_join or n == own else 1):
            return None
    return ""


def _path(node: _Node | None) -> Iterator[_Node]:
    """A node and those above it, nearest first."""
    while node is not None:
        yield node
        node = node.above


def _nodes(tree: Sequence[str]) -> dict[int, _Node] | None:
    """The nodes by their lines; None: one cannot hang where it stands, so that texts are among them.

    Lines of a text that look like nodes, and fit, give one of those above them more children than it has.
    """
    first = _FIRST.match(tree[0])
    if first is None:
        return None
    open_nodes = [_Node(first[1], first[2])]
    found = {0: open_nodes[0]}
    for n, line in enumerate(tree[1:], 1):
        match = _NODE.match(line)
        if match is None:
            # A line of a text: there is but one first node, and none without a branch to it.
            continue
        depth = len(match[1]) // 3 + 1
        while open_nodes[-1].depth >= depth:
            open_nodes.pop()
        node = _hung(match, depth, open_nodes[-1])
        if node is None:
            return None
        open_nodes.append(node)
        found[n] = node
    return found


def _hung(match: re.Match[str], depth: int, above: _Node) -> _Node | None:
    """The node of a line, below another; None: it cannot be there."""
    indent, branch, name, rest = match.groups()
    further = indent + ("   " if branch == _LAST else ":  ")
    if depth == above.depth + 2:
        # Subqueries are printed before the children.
        fits = indent[:-3] == above.indent and not above.children
        return _Node(name, rest, depth, above, _SUBQUERY, further) if fits else None
    if depth > above.depth + 2 or indent != above.indent or above.is_full:
        return None
    above.children += 1
    above.is_full = branch == _LAST
    return _Node(name, rest, depth, above, branch, further)
