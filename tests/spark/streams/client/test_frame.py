"""Which queries keep state is read from the plan that the server has analysed."""

from __future__ import annotations

import pytest

pytest.importorskip("grpc", reason="Spark Connect's packages are not installed: pip install 'alluvium[connect]'")

from alluvium.spark.streams.client.frame import _kept_by

LEAF = """Union false, false
:- LocalRelation <empty>, [id#1L]
+- Project [cast(null as bigint) AS id#2L]
   +- Filter isnull(assert_true(false, ... [alluvium-stream-7.]))
      +- Range (0, 1, step=1)"""


def below(*above: str, branch: str = "+- ", beside: str = "") -> list[str]:
    """The leaf below some nodes, the last of which may have another child."""
    lines = [("   " * (n - 1) + "+- " if n else "") + node for n, node in enumerate(above)]
    indent = "   " * (len(above) - 1) if above else ""
    leaf = LEAF.split("\n")
    first = ":  " if branch == ":- " else "   "
    hung = [indent + branch + leaf[0], *(indent + first + line for line in leaf[1:])] if above else leaf
    other = [indent + (":- " if branch == "+- " else "+- ") + beside] if beside else []
    return lines + (other + hung if branch == "+- " else hung + other)


TWICE = "the stream stands in it more than once"


def joined_to_itself(*above: str) -> list[str]:
    """The other side may have nodes of its own, which are not above the first leaf."""
    first = [":- " + LEAF.split("\n")[0], *(":  " + line for line in LEAF.split("\n")[1:])]
    second = below(*above)
    return ["Join Inner, (odd#1L = odd#2L)", *first, "+- " + second[0], *("   " + line for line in second[1:])]


def in_subquery() -> list[str]:
    leaf = LEAF.split("\n")
    return [
        "Filter id#9L IN (list#8 [])",
        ":  +- " + leaf[0],
        *(":     " + line for line in leaf[1:]),
        "+- Range (0, 9)",
    ]


@pytest.mark.parametrize(
    ("tree", "kept"),
    [
        (below(), ""),
        (below("Project [id#2L]", "Filter (id#2L > 1)"), ""),
        (below("Join LeftOuter, (id#2L = n#3)", branch=":- ", beside="Range (0, 3)"), ""),
        (below("Join Inner, (id#2L = n#3)", beside="Range (0, 3)"), ""),
        (
            below("Join RightOuter, (id#2L = n#3)", branch=":- ", beside="Range (0, 3)"),
            "Join RightOuter, (id#2L = n#3)",
        ),
        (below("Join LeftAnti, (id#2L = n#3)", beside="Range (0, 3)"), "Join LeftAnti, (id#2L = n#3)"),
        (below("Project [id#2L]", "Aggregate [id#2L], [count(1)]"), "Aggregate [id#2L], [count(1)]"),
        (below("Aggregate [id#2L], [count(1)]", "Project [id#2L]"), "Aggregate [id#2L], [count(1)]"),
        (below("Union false, false", beside="Range (0, 3)"), "Union false, false"),
        (["Range (0, 3)"], None),
        (joined_to_itself(), TWICE),
        (joined_to_itself("Aggregate [odd#2L], [count(1)]"), TWICE),
        (in_subquery(), "a subquery of Filter id#9L IN (list#8 [])"),
    ],
)
def test_nodes_above_a_stream(tree: list[str], kept: str | None) -> None:
    assert _kept_by(tree, "alluvium-stream-7.") == kept
