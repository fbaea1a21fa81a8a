"""Which scans of a table are below a DataFrame of Spark Connect: of the client's plan, and of what only names say.

The client knows its own plan. Where that has a text of SQL, the name of a view or a table, or rows that the server
keeps, the server is asked what it makes of this part, which costs it an analysis and a planning. It is asked of the
whole plan where an expression may have a query in it: by its text, or in a function of somebody's that it calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyspark.sql.connect.proto as proto
from pyspark.errors import PySparkException
from pyspark.sql import functions
from pyspark.sql.connect.client import SparkConnectClient

from alluvium.expr.sql.row_functions import CONSTRUCTS, JOB, QUERY_WORDS, ROW
from alluvium.expr.sql.sql_tokens import UnreadableText, read_tokens
from alluvium.spark.scan.connect_lane.explained import (
    analysed_tree,
    leaves_out_addresses,
    marks,
    meets,
    names_place,
    relations,
    source_name,
    unmarked,
)
from alluvium.spark.scan.connect_lane.marks import Mark, mark_of
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.scan.source import opener_of
from alluvium.spark.sessions.clone import messages_in

#: What a scan tells of itself; None: the table is read, or may be, and it is not known which version of it.
Read = Mark | None

#: Relations that the server alone can read, or whose kind this client does not know.
_OPAQUE = frozenset({None, "sql", "cached_remote_relation", "relation_changes", "extension", "unknown"})
#: Words one of which a query has.
_QUERIES = QUERY_WORDS | {"from", "map", "reduce"}
#: Functions of Spark, which ask for nothing beside their arguments, and operators and words that look like calls.
_KNOWN = ROW | JOB | CONSTRUCTS | {name.lower() for name in dir(functions)}


def reads_of(df: Any, own: OwnTable) -> tuple[Read, ...]:
    """The scans of a table below a DataFrame, those of subqueries included.

    Args:
        df: Of Spark Connect.
        own: The table.
    """
    client: SparkConnectClient = df.sparkSession.client
    plan = df._plan.plan(client)
    found: list[Read] = []
    for part in _parts(plan):
        if isinstance(part, Mark):
            found.append(part)
        elif part.WhichOneof("rel_type") == "read" and part.read.HasField("data_source"):
            found += _foreign(part.read.data_source, own.url)
        else:
            found += _told(client, part, plan, own.url)
    return tuple(kept for read in found for kept in _of_table(read, own))


def _of_table(read: Read, own: OwnTable) -> Iterator[Read]:
    known = None if read is None else own.is_read_by(read.about.identity)
    if known is not False and not (known is None and read is not None and read.about.is_pinned):
        yield read if known else None


def _parts(plan: proto.Relation) -> Iterator[Mark | proto.Relation]:
    """The marks of a plan, and the leaves beside them that may read something."""
    waiting: list[Any] = [plan]
    asks_further = False
    while waiting:
        message = waiting.pop()
        asks_further = asks_further or _may_query(message)
        if isinstance(message, proto.Relation):
            if (mark := _mark_of(message)) is not None:
                yield mark
                continue
            kind = message.WhichOneof("rel_type")
            if kind in _OPAQUE or kind == "read":
                yield message
                continue
            if kind == "with_relations" and message.with_relations.root.WhichOneof("rel_type") == "sql":
                # A text that names frames, which are beside it.
                yield message
                continue
        waiting.extend(messages_in(message))
    if asks_further:
        yield plan


def _may_query(message: Any) -> bool:
    """Whether an expression may have a query in it."""
    if isinstance(message, proto.Expression.ExpressionString):
        try:
            words = tuple(read_tokens(message.expression))
        except UnreadableText:
            # Spark has more tokens than we read.
            return True
        called = {word.folded for word, follower in pairwise(words) if follower.text == "("}
        return any(word.folded in _QUERIES for word in words) or not called <= _KNOWN
    if isinstance(message, (proto.Expression.UnresolvedFunction, proto.CallFunction)):
        name = message.function_name.lower()
        # The others are operators.
        return name.isidentifier() and name not in _KNOWN
    return False


def _mark_of(relation: proto.Relation) -> Mark | None:
    if relation.WhichOneof("rel_type") != "filter":
        return None
    return mark_of(relation.filter.condition.expression_string.expression)


def _foreign(source: proto.Read.DataSource, url: str) -> list[Read]:
    """Files that are read by their own addresses, or a source of the server's that is told one."""
    told = [*source.paths, *(value for key, value in source.options.items() if key.lower() == "path")]
    return [None] if any(meets(address, url) for address in told) else []


def _told(client: SparkConnectClient, part: proto.Relation, plan: proto.Relation, url: str) -> list[Read]:
    """What the server makes of a part, or of the whole plan, where the part alone means nothing."""
    text = _explained(client, part, "extended")
    if text is None:
        part, text = plan, _explained(client, plan, "extended")
    tree = None if text is None else analysed_tree(text)
    if tree is None:
        return [None]
    found: list[Read] = list(marks(tree))
    others = relations(unmarked(tree))
    # A source of ours that SQL of the server has opened: it does not say what.
    if any(opener_of(name) is not None for name in map(source_name, others) if name is not None):
        found.append(None)
    elif others:
        files = _explained(client, part, "formatted")
        told = "\n".join([*others, files or ""])
        if files is None or names_place(told, url) or (leaves_out_addresses(told) and _reads_at(client, part, url)):
            found.append(None)
    return found


def _reads_at(client: SparkConnectClient, relation: proto.Relation, url: str) -> bool:
    """Whether files of a query, of which the server names all, may be of what lies at a URL."""
    plan = proto.Plan()
    plan.root.CopyFrom(relation)
    try:
        files = client._analyze(method="input_files", plan=plan).input_files
    except PySparkException:
        return True
    return any(meets(folder, url) for folder in {file.rpartition("/")[0] or "/" for file in files or ()})


def _explained(client: SparkConnectClient, relation: proto.Relation, mode: str) -> str | None:
    plan = proto.Plan()
    plan.root.CopyFrom(relation)
    try:
        return str(client.explain_string(plan, mode))
    except PySparkException:
        return None
