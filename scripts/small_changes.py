"""Small changes of a module's text, found by Python's own tree: what `mutants.py` tries the tests with."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
#: Functions that say the opposite, or nearly the same: Arrow's comparisons above all.
_PAIRS = (
    "min max", "any all", "equal not_equal", "less less_equal", "greater greater_equal", "less_equal greater",
    "greater_equal less", "and_ or_", "and_kleene or_kleene", "is_null is_valid", "startswith endswith",
    "floor ceil", "removeprefix removesuffix", "partition rpartition", "split rsplit", "lstrip rstrip",
    "min_element_wise max_element_wise", "add subtract", "lower upper",
)  # fmt: skip
NAMES = {**{b: a for a, b in map(str.split, _PAIRS)}, **dict(map(str.split, _PAIRS))}


#: Whose arguments may stand in any order.
SYMMETRIC = frozenset(
    [
        "min",
        "max",
        "equal",
        "not_equal",
        "and_",
        "or_",
        "xor",
        "and_kleene",
        "or_kleene",
        "add",
        "multiply",
        "min_element_wise",
        "max_element_wise",
    ]
)


@dataclass(frozen=True)
class Change:
    """One small change.

    Attributes:
        path: The module, within the package.
        line: Of its first byte, from 1.
        start: Where the text begins that is replaced, in bytes, and
        end: ends.
        kind: What is done to it.
        text: What stands there instead.
        function: The line of the innermost function around it; 0: the module.
    """

    path: str
    line: int
    start: int
    end: int
    kind: str
    text: str
    function: int

    @property
    def room(self) -> str:
        return self.path.split("/")[0]

    @property
    def key(self) -> str:
        """What tells it from others, as long as the module is the same."""
        return f"{self.path}:{self.line}:{self.start}:{self.text}"


def expression_changes(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What may stand in the place of an expression."""
    if isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                made = copy.deepcopy(node)
                made.ops[place] = other()
                yield "comparison", made
    elif isinstance(node, ast.BoolOp):
        made = copy.deepcopy(node)
        made.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", made
        for place in range(len(node.values)):
            made = copy.deepcopy(node)
            del made.values[place]
            yield "condition dropped", made if len(made.values) > 1 else made.values[0]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        yield "not", node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        made = copy.deepcopy(node)
        made.op = OPERATORS[type(node.op)]()
        yield "operator", made
    elif isinstance(node, ast.IfExp):
        yield "other branch", node.body
        yield "other branch", node.orelse
    elif isinstance(node, ast.Constant):
        yield from (("constant", ast.Constant(value)) for value in other_constants(node.value))
    elif isinstance(node, ast.Call):
        yield from call_changes(node)


def other_constants(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    # Sentences are for people; a name is for others who have the same.
    if isinstance(value, str):
        return [value + "x" if value else "x"] if " " not in value else []
    return [value + b"x"] if isinstance(value, bytes) else []


def call_changes(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    # Of arguments that are not alike nobody could swap two unnoticed.
    kinds = {type(arg.value) if isinstance(arg, ast.Constant) else type(arg) for arg in node.args[:2]}
    alike = len({ast.unparse(arg) for arg in node.args[:2]}) == 1
    if len(node.args) > 1 and len(kinds) == 1 and not alike and name not in SYMMETRIC | {"isinstance"}:
        made = copy.deepcopy(node)
        made.args[:2] = reversed(made.args[:2])
        yield "arguments swapped", made
    # Who splits at every place splits the same from both ends.
    if name in NAMES and not (name in ("split", "rsplit") and len(node.args) + len(node.keywords) < 2):
        made = copy.deepcopy(node)
        if isinstance(made.func, ast.Name):
            made.func.id = NAMES[name]
        elif isinstance(made.func, ast.Attribute):
            made.func.attr = NAMES[name]
        yield "other function", made


def statement_changes(node: ast.AST, returned: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What may stand in the place of a statement."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not is_told(node.value)
    if is_call or isinstance(node, (ast.Raise, ast.Continue, ast.Break, ast.AugAssign)):
        yield "statement dropped", "pass"
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        names = {inner.id for inner in ast.walk(node.value) if isinstance(inner, ast.Name)}
        if node.targets[0].id in names:
            yield "statement dropped", "pass"
    elif isinstance(node, ast.Return) and node.value is not None:
        own = ast.unparse(node.value)
        yield from (("other return", f"return {other}") for other in returned if other != own)


def is_told(call: ast.Call) -> bool:
    return ast.unparse(call.func).startswith(("log.", "logging.", "warnings."))


#: What is said to people, to type checkers, or about how a class is made.
SILENT_CALLS = frozenset({"field", "cast", "TypeVar", "getLogger"})
SILENT_KEYWORDS = frozenset({"hint", "message", "repr", "durable", "strict", "use_threads"})


def left_out(tree: ast.AST, errors: frozenset[str]) -> set[int]:
    """Nodes that no run of a test can notice, or whose text nobody shall repeat in a test."""
    silent: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            silent += [*node.decorator_list, getattr(node, "returns", None)]
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            silent.append(node.annotation)
        elif isinstance(node, ast.Raise):
            silent += [node.exc, node.cause]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in SILENT_CALLS or name in errors or is_told(node):
                silent.append(node)
            silent += [k.value for k in node.keywords if k.arg in SILENT_KEYWORDS]
        elif isinstance(node, (ast.JoinedStr, ast.Assert)):
            # Python 3.11 does not say where the parts of an f-string stand.
            silent.append(node)
        elif isinstance(node, (ast.Expr, ast.If, ast.Assign)) and is_silent(node):
            silent.append(node)
    return {id(inner) for node in silent if node is not None for inner in ast.walk(node)}


def is_silent(node: ast.Expr | ast.If | ast.Assign) -> bool:
    """Whether it is a docstring, a list of exported names, or for type checkers alone."""
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return ast.unparse(node.test) == "TYPE_CHECKING"


def changes_of(path: str, source: bytes, errors: frozenset[str]) -> list[list[Change]]:
    """The places of a module where something can be changed, each with all that can be done there."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    silent = left_out(tree, errors)
    found: list[list[Change]] = []

    def visit(node: ast.AST, function: int, returned: tuple[str, ...]) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.lineno
            returned = tuple({ast.unparse(r.value): 0 for r in own_returns(node) if r.value is not None})
        if id(node) not in silent and hasattr(node, "end_col_offset"):
            assert isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword, ast.alias, ast.ExceptHandler))
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            options = [(kind, f"({ast.unparse(made)})") for kind, made in expression_changes(node)]
            options += list(statement_changes(node, returned))
            if isinstance(node, ast.If):
                start, end = (starts[node.test.lineno - 1] + node.test.col_offset,
                              starts[(node.test.end_lineno or 0) - 1] + (node.test.end_col_offset or 0))  # fmt: skip
                options = [("other branch", "(True)"), ("other branch", "(False)")]
            if options:
                line = node.lineno
                found.append([Change(path, line, start, end, kind, text, function) for kind, text in options])
        for child in ast.iter_child_nodes(node):
            visit(child, function, returned)

    visit(tree, 0, ())
    return found


def own_returns(function: ast.AST) -> Iterator[ast.Return]:
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.Return):
            yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from own_returns(child)
