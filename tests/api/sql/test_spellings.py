"""A statement, written in any way that the grammar allows, is read as the same statement."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.api.sql.grammar.alter import (
    AddConstraint,
    AddFeature,
    ClusterBy,
    DropConstraint,
    DropFeature,
    SyncIdentity,
)
from alluvium.api.sql.grammar.clone import Clone
from alluvium.api.sql.grammar.convert import ConvertToDelta, PartitionColumn
from alluvium.api.sql.grammar.fsck import FsckRepair
from alluvium.api.sql.grammar.generate import Generate
from alluvium.api.sql.grammar.history import DescribeDetail, DescribeHistory, Restore
from alluvium.api.sql.grammar.optimize import Optimize, Reorg
from alluvium.api.sql.grammar.parse import parse_statement
from alluvium.api.sql.grammar.vacuum import Vacuum
from alluvium.api.sql.text.names import RESERVED
from alluvium.api.sql.text.terms import AsOf, PathLiteral, SqlText, TableName

# -- pieces: texts that stay as they are, between which blanks and comments may come -----------------------------------

_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
_NAMES = st.one_of(
    st.sampled_from(
        ["t", "db", "delta", "full", "lite", "clone", "select", "2024_t", "größe", "`", "a b", "a.b", "--", "/*"]
    ),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8),
)
_BARE = re.compile(r"[A-Za-z_]\w*")
_BLANKS = st.sampled_from([" ", "\n", "\t ", " /* c */ ", " -- c ' \" `\n", "/**/", " /* a /* b */ */ "])
_CONDITIONS = st.sampled_from(
    [
        "a = 1",
        "day >= '2024-01-01'",
        "f(x, ')') > ((1))",
        "a[0]  =  'it''s'",
        "`zorder by` = 1",
        '"x" != y -- z\n+ 1',
        "apply = 1",
    ]
)


class Written(str):
    """A name as it is written: its letters are its own, where a keyword's may change their case."""

    __slots__ = ()


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@st.composite
def name_part(draw, free: bool = False) -> tuple[str, str]:
    """A name and how it is written."""
    name = draw(_NAMES)
    bare = _BARE.fullmatch(name) is not None and (free or name.upper() not in RESERVED) and name.lower() != "identifier"
    # Words that open a clause are names, where no clause would fit: other tests have them.
    bare = bare and name.lower() not in {"table", "to", "for", "column", "shallow", "deep", "clone", "none"}
    return name, Written(name if bare and draw(st.booleans()) else quoted(name))


@st.composite
def names(draw, most: int = 3, free: bool = False) -> tuple[tuple[str, ...], list[str]]:
    parts = draw(st.lists(name_part(free), min_size=1, max_size=most))
    pieces = [parts[0][1]]
    for _, written in parts[1:]:
        pieces += [".", written]
    return tuple(name for name, _ in parts), pieces


@st.composite
def strings(draw) -> tuple[str, str]:
    """A text and a literal that stands for it."""
    text, quote = draw(_TEXTS), draw(st.sampled_from("'\""))
    escaped = text.replace("\\", "\\\\").replace(quote, draw(st.sampled_from(["\\" + quote, quote * 2])))
    return text, quote + escaped + quote


@st.composite
def tables(draw, most: int = 3):
    parts, pieces = draw(names(most))
    return TableName(parts), pieces


@st.composite
def targets(draw):
    if draw(st.booleans()):
        return draw(tables())
    text, literal = draw(strings())
    return PathLiteral(text), [literal]


@st.composite
def points(draw):
    filler = ["FOR"] if draw(st.booleans()) else []
    if draw(st.booleans()):
        version = draw(st.integers(0, 2**63 - 1))
        word = draw(st.sampled_from(["VERSION", "SYSTEM_VERSION"]))
        return AsOf(version), [*filler, word, "AS", "OF", str(version)]
    text, literal = draw(strings())
    return AsOf(None, text), [*filler, draw(st.sampled_from(["TIMESTAMP", "SYSTEM_TIME"])), "AS", "OF", literal]


@st.composite
def columns(draw):
    found = draw(st.lists(names(free=True), min_size=1, max_size=3))
    pieces = []
    for _, written in found:
        pieces += [*written, ","]
    return tuple(parts for parts, _ in found), pieces[:-1]


# -- statements --------------------------------------------------------------------------------------------------------


@st.composite
def vacuums(draw):
    target, pieces = draw(targets())
    clauses, said = [], {"lite": None, "inventory": None, "retain_hours": None, "dry_run": False}
    if draw(st.booleans()):
        hours = draw(st.sampled_from([("168", 168.0), (".5", 0.5), ("1e2", 100.0), ("24D", 24.0), ("0", 0.0)]))
        said["retain_hours"] = hours[1]
        clauses.append(["RETAIN", hours[0], "HOURS"])
    if draw(st.booleans()):
        said["dry_run"] = True
        clauses.append(["DRY", "RUN"])
    if draw(st.booleans()):
        said["lite"] = draw(st.booleans())
        clauses.append(["LITE" if said["lite"] else "FULL"])
    if not said["lite"] and draw(st.booleans()):
        inventory, written = draw(tables())
        if draw(st.booleans()):
            inventory = SqlText("select path, ')' from (values (1))")
            written = ["(", inventory.text, ")"]
        said["inventory"] = inventory
        clauses.append(["USING", "INVENTORY", *written])
    for clause in draw(st.permutations(clauses)):
        pieces += clause
    return Vacuum(target, **said), ["VACUUM", *pieces]


@st.composite
def optimizes(draw):
    target, pieces = draw(targets())
    full, where, zorder = draw(st.booleans()), None, ()
    pieces += ["FULL"] if full else []
    if draw(st.booleans()):
        where = SqlText(draw(_CONDITIONS))
        pieces += ["WHERE", where.text]
    if draw(st.booleans()):
        zorder, written = draw(columns())
        pieces += ["ZORDER", "BY", *(["(", *written, ")"] if draw(st.booleans()) else written)]
    return Optimize(target, full, where, zorder), ["OPTIMIZE", *pieces]


@st.composite
def reorgs(draw):
    table, pieces = draw(tables())
    pieces = ["REORG", "TABLE", *pieces]
    if draw(st.booleans()):
        compat = ["ICEBERG_COMPAT_VERSION", draw(st.sampled_from(["=", "=="])), "2"]
        return Reorg(table, None, 2), [*pieces, "APPLY", "(", "UPGRADE", "UNIFORM", "(", *compat, ")", ")"]
    where = SqlText(draw(_CONDITIONS)) if draw(st.booleans()) else None
    return Reorg(table, where), [*pieces, *(["WHERE", where.text] if where else []), "APPLY", "(", "PURGE", ")"]


@st.composite
def describes(draw):
    target, pieces = draw(targets())
    verb = draw(st.sampled_from(["DESC", "DESCRIBE"]))
    if draw(st.booleans()):
        return DescribeDetail(target), [verb, "DETAIL", *pieces]
    limit = draw(st.one_of(st.none(), st.integers(0, 2**31 - 1)))
    return DescribeHistory(target, limit), [verb, "HISTORY", *pieces, *([] if limit is None else ["LIMIT", str(limit)])]


@st.composite
def restores(draw):
    table, pieces = draw(tables())
    as_of, written = draw(points())
    table_word, to = (["TABLE"] if draw(st.booleans()) else []), (["TO"] if draw(st.booleans()) else [])
    return Restore(table, as_of), ["RESTORE", *table_word, *pieces, *to, *written]


@st.composite
def conversions(draw):
    table, pieces = draw(tables())
    statistics, found = draw(st.booleans()), None
    pieces = ["CONVERT", "TO", "DELTA", *pieces, *([] if statistics else ["NO", "STATISTICS"])]
    if draw(st.booleans()):
        found = []
        pieces += ["PARTITIONED", "BY", "("]
        for name, written in draw(st.lists(name_part(free=True), min_size=1, max_size=3)):
            text, literal = draw(strings())
            kind = draw(
                st.sampled_from(
                    [["int"], ["string"], ["decimal", "(", "10", ",", "2", ")"], ["varchar", "(", "3", ")"]]
                )
            )
            nullable, said = draw(st.booleans()), draw(st.booleans())
            found.append(PartitionColumn(name, "".join(kind), nullable, text if said else None))
            pieces += [
                written,
                *kind,
                *([] if nullable else ["NOT", "NULL"]),
                *(["COMMENT", literal] if said else []),
                ",",
            ]
        pieces[-1] = ")"
    return ConvertToDelta(table, statistics, None if found is None else tuple(found)), pieces


@st.composite
def clones(draw):
    (target, pieces), (source, from_) = draw(tables()), draw(tables(most=4))
    create, replace, if_not_exists = draw(st.sampled_from([(1, 0, 0), (1, 1, 0), (0, 1, 0), (1, 0, 1)]))
    head = [*(["CREATE"] if create else []), *(["OR"] if create and replace else []), *(["REPLACE"] if replace else [])]
    shallow = draw(st.booleans())
    depth = ["SHALLOW"] if shallow else draw(st.sampled_from([["DEEP"], []]))
    pieces = [*head, "TABLE", *(["IF", "NOT", "EXISTS"] if if_not_exists else []), *pieces, *depth, "CLONE", *from_]
    as_of = None
    if draw(st.booleans()):
        as_of, written = draw(points())
        pieces += written
    properties = draw(st.dictionaries(_TEXTS, strings(), max_size=3))
    if properties:
        pieces += ["TBLPROPERTIES", "("]
        for key, (_, literal) in properties.items():
            equals = draw(st.sampled_from([["="], ["=="]]))
            pieces += ["'" + key.replace("\\", "\\\\").replace("'", "''") + "'", *equals, literal, ","]
        pieces[-1] = ")"
    location, literal = draw(strings())
    if draw(st.booleans()):
        pieces += ["LOCATION", literal]
    else:
        location = None
    given_properties = tuple((key, text) for key, (text, _) in properties.items())
    flags = bool(create), bool(replace), bool(if_not_exists)
    return Clone(target, source, shallow, as_of, *flags, given_properties, location), pieces


@st.composite
def alterations(draw):
    table, pieces = draw(tables(most=5))
    pieces = ["ALTER", "TABLE", *pieces]
    (name, written), choice = draw(name_part()), draw(st.integers(0, 6))
    flag = draw(st.booleans())
    if choice == 0:
        check = SqlText(draw(_CONDITIONS))
        return AddConstraint(table, name, check), [*pieces, "ADD", "CONSTRAINT", written, "CHECK", "(", check.text, ")"]
    if choice == 1:
        return DropConstraint(table, name, flag), [
            *pieces,
            "DROP",
            "CONSTRAINT",
            *(["IF", "EXISTS"] if flag else []),
            written,
        ]
    if choice == 2:
        text, literal = draw(strings())
        return AddFeature(table, text), [*pieces, "ADD", "FEATURE", literal]
    if choice == 3:
        return DropFeature(table, name, flag), [
            *pieces,
            "DROP",
            "FEATURE",
            written,
            *(["TRUNCATE", "HISTORY"] if flag else []),
        ]
    if choice == 4:
        return ClusterBy(table, ()), [*pieces, "CLUSTER", "BY", "NONE"]
    found, written = draw(columns())
    if choice == 5:
        return ClusterBy(table, found), [*pieces, "CLUSTER", "BY", "(", *written, ")"]
    column, written = draw(names(free=True))
    verb = draw(st.sampled_from(["ALTER", "CHANGE"]))
    return SyncIdentity(table, column), [*pieces, verb, *(["COLUMN"] if flag else []), *written, "SYNC", "IDENTITY"]


@st.composite
def others(draw):
    table, pieces = draw(tables())
    if draw(st.booleans()):
        dry = draw(st.booleans())
        return FsckRepair(table, dry), ["FSCK", "REPAIR", "TABLE", *pieces, *(["DRY", "RUN"] if dry else [])]
    mode, written = draw(name_part())
    return Generate(table, mode), ["GENERATE", written, "FOR", "TABLE", *pieces]


STATEMENTS = {
    "vacuum": vacuums(),
    "optimize": optimizes(),
    "reorg": reorgs(),
    "describe": describes(),
    "restore": restores(),
    "convert": conversions(),
    "clone": clones(),
    "alter": alterations(),
    "others": others(),
}


def spelled(draw, pieces: list[str]) -> str:
    """The pieces with blanks and comments between them, keywords in any case."""
    text = draw(st.sampled_from(["", "\n", "/* VACUUM */ "]))
    for piece in pieces:
        keyword = type(piece) is str and piece.replace("_", "").isalpha() and piece.isupper()
        text += draw(st.sampled_from([piece, piece.lower(), piece.title()])) if keyword else piece
        text += draw(_BLANKS)
    return text + draw(st.sampled_from(["", ";", " ; ;", "-- end"]))


@pytest.mark.long
@pytest.mark.parametrize("family", STATEMENTS)
@settings(max_examples=60)
@given(data=st.data())
def test_every_spelling_says_the_same(family, data):
    statement, pieces = data.draw(STATEMENTS[family])
    text = spelled(data.draw, pieces)
    assert parse_statement(text) == statement, text
