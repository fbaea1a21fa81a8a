"""Changes of footers field by field: what a changed bit seldom leaves readable, these leave well-formed and wrong.

Footers are read into trees: a struct is a list of fields (`[number, kind, value]`), a list is `[kind of its elements,
elements]`; the rest are integers and bytes. A change is made anywhere in the tree, and the tree written again.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

_STRANGE = (0, 1, -1, 2, 7, 37, 39, 77, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**32 + 1, 2**63 - 1, -(2**63))
_BYTES = (b"", b"\0", b"\xff", b"\xff" * 9, b"a", b"\xc3", b"x" * 3000)

# Types of Thrift's compact protocol
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


def changed_footer(data: bytes, random: Random) -> bytes | None:
    """A file of Parquet or ORC with one to three changes of its footer; None: it is neither, or unreadable."""
    for change in (_changed_parquet, _changed_orc):
        try:
            made = change(data, random)
        except (IndexError, KeyError, ValueError, TypeError, RecursionError):
            continue
        if made is not None:
            return made
    return None


def with_orc_footer(data: bytes, change: Callable[[list[Any]], object]) -> bytes:
    """An ORC file without compression whose footer, a tree of fields, was changed in place."""
    length = data[-1]
    postscript = _message(data[-1 - length : -1])
    size = next(value for number, _, value in postscript if number == 1)
    begin = len(data) - 1 - length - size
    tree = _deep(data[begin : begin + size])
    change(tree)
    footer = format_message(tree)
    written = format_message([Field([n, kind, len(footer) if n == 1 else value]) for n, kind, value in postscript])
    return data[:begin] + footer + written + bytes([len(written)])


# -- trees ------------------------------------------------------------------------------------------------------------


def _change(tree: Any, random: Random) -> None:
    """One to three changes of a tree, a list of fields, in place."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(tree))
        holder, place = random.choice(places)
        value = holder[place]
        # What is small in a footer says most of it; what is large are mostly names.
        if isinstance(value, int):
            holder[place] = random.choice((*_STRANGE, value + 1, value - 1, value * 2, -value, random.randrange(40)))
        elif isinstance(value, bytes):
            holder[place] = _other_bytes(value, random)
        else:
            _other_items(value, [inner[at] for inner, at in places], random)


def _places(node: list[Any]) -> Any:
    """Where values stand: fields and elements, and what is in them; not the numbers and kinds of fields."""
    for place, one in enumerate(node):
        if isinstance(one, Field):
            yield one, 2
            if isinstance(one[2], list):
                yield from _places(one[2])
        else:
            yield node, place
            if isinstance(one, list):
                yield from _places(one)


class Field(list[Any]):
    """Number, kind and value."""


class Items(list[Any]):
    """Elements of one kind.

    Attributes:
        kind: Of theirs.
    """

    kind: int = _STRUCT


def _other_bytes(value: bytes, random: Random) -> bytes:
    at = random.randrange(len(value) + 1)
    return random.choice((*_BYTES, value[:at], value + value, value[:at] + random.randbytes(2) + value[at + 2 :]))


def _other_items(value: list[Any], others: list[Any], random: Random) -> None:
    """A struct or list with a part gone, twice, elsewhere, or another's."""
    act = random.randrange(5)
    at = random.randrange(len(value)) if value else 0
    if act == 0 or not value:
        value[at : at + 1] = []
    elif act == 1:
        value.insert(random.randrange(len(value) + 1), value[at])
    elif act == 2:
        random.shuffle(value)
    elif act == 3 and isinstance(value[at], Field):
        value[at] = Field([random.choice((value[at][0] + 1, random.randrange(1, 20))), *value[at][1:]])
    elif isinstance(value[at], Field):
        fitting = [one for one in others if type(one) is type(value[at][2]) and one is not value]
        value[at] = Field([value[at][0], value[at][1], random.choice(fitting) if fitting else value[at][2]])
    else:
        value.append(value[at])


# -- Parquet: Thrift's compact protocol -------------------------------------------------------------------------------


def _changed_parquet(data: bytes, random: Random) -> bytes | None:
    if data[-4:] != b"PAR1":
        return None
    length = int.from_bytes(data[-8:-4], "little")
    reader = _Thrift(data[len(data) - 8 - length : -8])
    tree = reader.struct()
    _change(tree, random)
    made = _thrift_struct(tree)
    return data[: len(data) - 8 - length] + made + len(made).to_bytes(4, "little") + b"PAR1"


class _Thrift:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise ValueError("cut off")
        self.at += size
        return self.data[self.at - size : self.at]

    def struct(self) -> list[Any]:
        fields, number = [], 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            fields.append(Field([number, head & 15, self.value(head & 15)]))
        return fields

    def value(self, kind: int, in_list: bool = False) -> Any:
        if kind in (_TRUE, _FALSE):
            return self.byte() if in_list else kind
        if kind in (_I16, _I32, _I64):
            return self.zigzag()
        if kind == _BYTE:
            return self.byte()
        if kind == _BINARY:
            return self.take(self.varint())
        if kind == _DOUBLE:
            return self.take(8)
        if kind == _STRUCT:
            return self.struct()
        if kind not in (_LIST, _SET):
            raise ValueError("no type of Parquet's")
        head = self.byte()
        items = Items()
        items.kind = head & 15
        items += [self.value(items.kind, in_list=True) for _ in range(head >> 4 if head >> 4 < 15 else self.varint())]
        return items


def _thrift_struct(fields: list[Any]) -> bytes:
    made, last = bytearray(), 0
    for number, kind, value in fields:
        if kind in (_TRUE, _FALSE):
            kind = _TRUE if value == _TRUE else _FALSE
        made += bytes([(number - last) << 4 | kind]) if 0 < number - last < 16 else bytes([kind]) + _zigzag(number)
        made += b"" if kind in (_TRUE, _FALSE) else _thrift_value(kind, value)
        last = number
    return bytes(made) + b"\0"


def _thrift_value(kind: int, value: Any) -> bytes:
    if kind in (_TRUE, _FALSE, _BYTE):
        return bytes([value & 255])
    if kind in (_I16, _I32, _I64):
        return _zigzag(value)
    if kind == _BINARY:
        return varint(len(value)) + bytes(value)
    if kind == _DOUBLE:
        return (bytes(value) + bytes(8))[:8]
    if kind == _STRUCT:
        return _thrift_struct(value)
    head = bytes([len(value) << 4 | value.kind]) if len(value) < 15 else bytes([0xF0 | value.kind]) + varint(len(value))
    return head + b"".join(_thrift_value(value.kind, one) for one in value)


def _zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def varint(value: int) -> bytes:
    """As both write numbers without a sign."""
    made = bytearray()
    value &= 2**64 - 1
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


# -- ORC: Protocol Buffers --------------------------------------------------------------------------------------------

_NUMBER, _LENGTH = 0, 2
_STRIPES, _STRIPE_FOOTER = 3, 4


def _changed_orc(data: bytes, random: Random) -> bytes | None:
    """Without compression, else the footer is left as it is; the postscript says how long it is."""
    length = data[-1]
    postscript = _message(data[-1 - length : -1])
    if not any(number == 8000 and value == b"ORC" for number, _, value in postscript):
        return None
    fields = {number: value for number, _, value in postscript}
    begin = len(data) - 1 - length - fields[1]
    tail = data[begin : len(data) - 1 - length]
    tree = [] if fields.get(2) else _deep(tail)
    body = data[:begin]
    act = random.random()
    if not tree or act < 0.1:
        _change(postscript, random)
    elif act < 0.4:
        body = _with_stripe(body, tree, random)
    else:
        _change(tree, random)
    footer = format_message(tree) if tree else tail
    if random.random() < 0.9:
        postscript = [Field([n, kind, len(footer) if n == 1 else value]) for n, kind, value in postscript]
    written = format_message(postscript)[-255:]
    return body + footer + written + bytes([len(written)])


def _with_stripe(body: bytes, footer: list[Any], random: Random) -> bytes:
    """What lies before a footer, with another footer of the last stripe; the footer says how long that is."""
    stripe = [value for number, _, value in footer if number == _STRIPES][-1]
    place = {number: value for number, _, value in stripe}
    begin = place[1] + place[2] + place[3]
    tree = _deep(body[begin : begin + place[4]])
    _change(tree, random)
    made = format_message(tree)
    for one in stripe:
        one[2] = len(made) if one[0] == _STRIPE_FOOTER else one[2]
    return body[:begin] + made + body[begin + place[4] :]


def _message(data: bytes) -> list[Any]:
    reader, fields = _Thrift(data), []
    while reader.at < len(data):
        key = reader.varint()
        kind = key & 7
        size: dict[int, Callable[[], Any]] = {0: reader.varint, 1: lambda: reader.take(8), 5: lambda: reader.take(4)}
        fields.append(Field([key >> 3, kind, reader.take(reader.varint()) if kind == _LENGTH else size[kind]()]))
        if not key >> 3:
            raise ValueError("no field")
    return fields


def _deep(data: bytes) -> list[Any]:
    """A message, and those within: bytes that can be read as one are one."""
    fields = _message(data)
    for field in fields:
        if field[1] == _LENGTH and len(field[2]) > 1:
            try:
                field[2] = _deep(field[2])
            except (IndexError, KeyError, ValueError, TypeError, RecursionError):
                continue
    return fields


def format_message(fields: list[Any]) -> bytes:
    """A tree of fields as Protocol Buffers have it."""
    made = bytearray()
    for number, kind, value in fields:
        if isinstance(value, list):
            value = format_message(value)
        kind = kind if isinstance(value, bytes) else _NUMBER
        if isinstance(value, bytes) and kind == _NUMBER:
            kind = _LENGTH
        made += varint(number << 3 | kind)
        sizes = {1: 8, 5: 4}
        if kind == _NUMBER:
            made += varint(value)
        elif kind == _LENGTH:
            made += varint(len(value)) + value
        else:
            made += (value + bytes(8))[: sizes[kind]]
    return bytes(made)


def orc_stream(data: bytes, column: int, kind: int) -> bytes:
    """The bytes of a stream of an ORC file without compression, of one stripe."""
    _, _, begin, size = _place_of_stream(data, column, kind)
    return data[begin : begin + size]


def with_orc_stream(data: bytes, column: int, kind: int, stream: bytes) -> bytes:
    """The same file with other bytes in a stream."""
    place, footer, begin, size = _place_of_stream(data, column, kind)
    for _, _, fields in (field for field in footer if field[0] == 1):
        told = {number: value for number, _, value in fields}
        for field in fields:
            if field[0] == 3 and (told[2], told[1]) == (column, kind):
                field[2] = len(stream)
    made = format_message(footer)
    end = place[1] + place[2] + place[3]
    body = data[:begin] + stream + data[begin + size : end] + made + data[end + place[4] :]

    def fit(tree: list[Any]) -> None:
        for one in next(field for field in tree if field[0] == _STRIPES)[2]:
            one[2] = {3: place[3] + len(stream) - size, 4: len(made)}.get(one[0], one[2])

    return with_orc_footer(body, fit)


def _place_of_stream(data: bytes, column: int, kind: int) -> tuple[dict[int, int], list[Any], int, int]:
    """Of the stripe its place and its footer, of the stream where it begins and how long it is."""
    place: dict[int, int] = {}

    def note(tree: list[Any]) -> None:
        place.update({number: value for number, _, value in next(field for field in tree if field[0] == _STRIPES)[2]})

    with_orc_footer(data, note)
    end = place[1] + place[2] + place[3]
    footer = _deep(data[end : end + place[4]])
    at = place[1]
    for _, _, fields in (field for field in footer if field[0] == 1):
        told = {number: value for number, _, value in fields}
        if (told[2], told[1]) == (column, kind):
            return place, footer, at, told[3]
        at += told[3]
    raise KeyError((column, kind))
