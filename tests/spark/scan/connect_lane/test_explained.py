"""What a server's explanation tells of scans; without a JVM. The texts are those that Spark 4.3 printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from alluvium.expr.tree import Column, Compare, Literal
from alluvium.schema.types import LONG, Field, Struct
from alluvium.spark.scan.connect_lane.explained import (
    analysed_tree,
    is_over_rows,
    leaves_out_addresses,
    marks,
    meets,
    names_place,
    relations,
    source_name,
    unmarked,
)
from alluvium.spark.scan.connect_lane.marks import Mark, marks_in
from alluvium.spark.scan.native_lane.describe import About

MARK = Mark(About(("/data/t", "3", "id", "0", "UTC", ""), "", True), ("x = 1",), "UTC")
TEXT = f"""== Parsed Logical Plan ==
'Project [*]
+- 'UnresolvedRelation [v], [], false

== Analyzed Logical Plan ==
id: bigint
Project [id#1L]
+- Filter NOT id#1L IN (list#9 [])
   :  +- Project [id#4L]
   :     +- SubqueryAlias v
   :        +- View (`v`, [id#4L])
   :           +- Filter isnotnull({MARK.text})
   :              +- Union false, false
   :                 :- Relation [id#4L] parquet
   :                 +- Relation [id#5L] parquet
   +- SubqueryAlias w
      +- Relation [id#1L] parquet

== Optimized Logical Plan ==
Relation [id#1L] parquet

== Physical Plan ==
"""


def test_marks_come_back_as_they_were_made():
    assert marks_in(f"isnotnull({MARK.text})") == (MARK,)
    assert marks_in("alluvium-scan:bm9uc2Vuc2U= alluvium-scan:x") == ()
    x = Compare("=", Column(("x",), LONG), Literal(1, LONG))
    assert MARK.wanted(Struct((Field("x", LONG),))) == x
    assert MARK.wanted(Struct((Field("y", LONG),))) is None
    assert Mark(MARK.about, (), "UTC").wanted(Struct((Field("x", LONG),))) is None
    assert Mark(MARK.about, ("x = 1",), None).wanted(Struct((Field("x", LONG),))) is None


def test_what_stands_below_a_mark_is_its_own():
    tree = analysed_tree(TEXT)
    assert tree is not None and tree[0] == "Project [id#1L]" and len(tree) == 11
    assert list(marks(tree)) == [MARK]
    assert relations(unmarked(tree)) == ("      +- Relation [id#1L] parquet",)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("== Analyzed Logical Plan ==", "=="),
        TEXT[: TEXT.index("== Optimized")],
        TEXT + "... 817 more characters",
        TEXT.replace("[id#5L]", "*********(redacted)"),
    ],
)
def test_a_text_that_is_not_all_there(text: str):
    assert analysed_tree(text) is None


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (("Filter (a#1 > 1)", "+- LocalRelation <empty>, [a#1]"), True),
        (("Filter (b#1 = it", "+- x))", "+- LocalRelation <empty>, [b#1]"), True),
        (("Filter exists#2 []", ":  +- Range (0, 1, step=1)", "+- LocalRelation <empty>, [a#1]"), False),
        (("Project [a#1]", "+- Window [row_number()]", "   +- LocalRelation <empty>, [a#1]"), False),
        (("Project [x", "+- LocalRelation y]", "+- Generate explode(b#1)", "   +- LocalRelation <empty>"), False),
        (("Aggregate [sum(a#1)]", "+- LocalRelation <empty>, [a#1]"), False),
    ],
)
def test_one_node_over_rows(tree: tuple[str, ...], expected: bool):
    assert (is_over_rows(tree, "Filter") or is_over_rows(tree, "Project")) is expected


def test_a_text_of_the_plan_that_looks_like_a_mark_is_none():
    tree = (
        f"Project [alluvium {MARK.text} AS a#1]",
        f"+- Filter (isnotnull({MARK.text}) AND (a#1 = 2))",
        "   +- Relation [a#1]",
    )
    assert list(marks(tree)) == [] and len(relations(unmarked(tree))) == 1


def test_leaves_that_read_nothing():
    tree = (
        "Join Inner",
        ":- LocalRelation [a#1]",
        ":- OneRowRelation",
        ":- CTERelationRef 1",
        "+- LogicalRDD [b#2], false",
    )
    assert relations(unmarked(tree)) == ()
    assert len(relations(iter(["+- RelationV2[id#1] a", "HiveTableRelation [`t`]", "StreamingRelation x"]))) == 3
    assert source_name("   +- RelationV2[id#0L, v#1] delta delta") == "delta"
    assert source_name("+- Relation [id#0L] parquet") is None


@pytest.mark.parametrize(
    ("address", "url", "expected"),
    [
        ("/data/t", "/data/t", True),
        ("file:///data/t/p=0", "/data/t", True),
        ("file:/data", "/data/t", True),
        ("/data/*", "/data/t", True),
        ("/data/t/p={0,1}", "/data/t", True),
        ("/data/t2", "/data/t", False),
        ("/data/x*", "/data/t", False),
        ("/dat", "/data/t", False),
        ("/", "/data/t", True),
        ("s3a://b/t/x.parquet", "s3://b/t", True),
        ("s3a://c/t/x.parquet", "s3://b/t", False),
        ("t/p=0", "/data/t", True),
        ("data", "/data/t", True),
        ("u", "/data/t", False),
    ],
)
def test_which_addresses_may_be_of_a_table(address: str, url: str, expected: bool):
    assert meets(address, url) is expected


def test_places_in_a_formatted_explanation():
    text = "(1) Scan parquet\nOutput [1]: [id#0L]\nBatched: true\nLocation: InMemoryFileIndex [file:/data/t/a.parquet, ... 3 entries]\n"
    assert names_place(text, "/data/t") and names_place(text, "file:///data/t/")
    assert not names_place(text, "/data/t/a") and not names_place(text, "/other")
    assert names_place("Location: InMemoryFileIndex [file:/data]\n", "/data/t")
    assert names_place("+- Relation spark_catalog.delta.`s3a://b/t`[id#1] parquet", "s3://b/t")
    assert not names_place("Location: InMemoryFileIndex []\n", "/data/t")
    assert leaves_out_addresses(text) and not leaves_out_addresses("Location: InMemoryFileIndex [file:/data/t]\n")


def test_addresses_through_links(tmp_path: Path):
    table, link, other = tmp_path / "t", tmp_path / "link", tmp_path / "other"
    (table / "p=0").mkdir(parents=True)
    (other / "p=0").mkdir(parents=True)
    link.symlink_to(table)
    for url in (str(table), f"file:{link}"):
        for address in (
            link,
            f"file://{link}/p=0",
            f"{link}/*",
            f"{tmp_path}/l*k/p={{0,1}}",
            f"{tmp_path}/[!t]ink/p=?",
        ):
            assert meets(str(address), url), address
        assert names_place(f"Location: InMemoryFileIndex [file:{link}/p=0]\n", url)
        assert names_place(f"+- RelationV2[id#1] odd.`{link}/p=0`", url)
        assert not names_place(f"Location: InMemoryFileIndex [file:{other}]\n", url)
        assert not meets(f"{tmp_path}/o*", url) and not meets(f"{other}/p=0", url)
