"""Which queries keep state is read from the plan that the server has analysed."""

from __future__ import annotations

import pytest

from alluvium.spark.streams.client.printed_plan import kept_by

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
        (["", *below()], None),
        (joined_to_itself(), TWICE),
        (joined_to_itself("Aggregate [odd#2L], [count(1)]"), TWICE),
        (in_subquery(), "a subquery of Filter id#9L IN (list#8 [])"),
    ],
)
def test_nodes_above_a_stream(tree: list[str], kept: str | None) -> None:
    assert kept_by(tree, "alluvium-stream-7.") == kept


TEXTS = ["x\nAggregate [a]", "x\n\n   Sort [b]\n: Limit 1\n", "a\n== Analyzed Logical Plan ==\n- b\n+-"]
NODES = [
    "Project [b]\n+- Project [a]", "\n+- Project [b]", "\n:- Project [b]", "\n   :- Project [b]", "\n   +- Project [b]",
    "\n   :  +- Project [b]", "\n      +- Project [b]", "\n         +- Project [b]", "\n:  +- Project [b]", "\n+- Filter b\n:- Range (0, 9)",
]  # fmt: skip


TREES = {
    "": below("Project [0 AS nothing]", "Filter NOT (s#3 = )", "Project [id#2L]"),
    "Aggregate [": below("Project [0 AS nothing]", "Filter NOT (s#3 = )", "Aggregate [id#2L]", "Project [id#2L]"),
    "Join LeftOuter": below("Join LeftOuter, (id#2L = n#3)", "Join Inner, (id#2L = n#3)", beside="Range (0, 3)"),
    "Sort [": [
        "Project [0 AS nothing]", "+- Join Inner, (id#2L = n#3)", "   :- Sort [id#2L]", *("   :  " + line for line in below("Project [id#2L]")),
        "   +- Range (0, 3)",
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", [*TEXTS, *NODES])
@pytest.mark.parametrize("kept", TREES)
def test_lines_of_a_text_are_no_nodes(text: str, kept: str) -> None:
    """They hide no state that there is; where they look like nodes, it may not be said that there is none."""
    tree = TREES[kept]
    assert (kept_by(tree, "alluvium-stream-7.") or "").startswith(kept)
    for at in range(len(tree)):
        lines = "\n".join([*tree[:at], tree[at] + text, *tree[at + 1 :]]).split("\n")
        found = kept_by(lines, "alluvium-stream-7.")
        assert (found is None and text in NODES) or (found is not None and found.startswith(kept))
