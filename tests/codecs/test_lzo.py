"""LZO1X: a file that Spark wrote, streams by hand, and damage."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from pyarrow import orc

from alluvium.codecs.footers.orc_footer import FooterColumn, read_orc_footer, read_sound_tail
from alluvium.codecs.footers.parquet_footer import ColumnStats
from alluvium.codecs.lzo import decompress_lzo
from alluvium.schema import types as t

#: Three columns (`bigint`, `decimal(20,2)`, text) and five rows, by Spark 4.3 with `compression` `lzo`.
BY_SPARK = bytes.fromhex(
    "4f52431100000a061204080550002b00000a130a03000000120c0805120608001008181450003700000a190a05000000000012100805320a"
    "0a01301201361a0231355000520000270a400a0500000000001237080522310a1574657874202d12003012335800033418d2015000110000"
    "090000c00400020b0000001e065a0c090000420422005400001674657874202d1100302d3c0099013194002d1100322d3c00990133940029"
    "100002657874203411000005000002159e0000190a0608061000180b9f000118189f0002181e9c000803182c0a060801100118079c000602"
    "18080a0608051002dc01000903182d0a06080210031805120208001202080212020802120208021100009c00004a0a650a04080550000a0e"
    "08051206080010081814500058070a120805320a0a01301201361a0231355000580f0a39080522310a1574657874202d1200301233580005"
    "3418d20150005832110000b40100770803108a021a0a0803106d1848205228052211080c12030102031a0269641a01641a01732202080422"
    "06080e28143002222508073a210a17737061726b2e73716c2e636174616c7973742e747970651206737472696e672a210a186f72672e6170"
    "616368652eb405003a76657273696f6e1205342e332e3030053a04080550003a0e08051206080010081814500058073a120805320a0a0130"
    "1201361a0231355000580f3a39080522310a1574657874207465787420282600301233580000043418d2015000583240904e480058016205"
    "322e332e3011000008dd011003188080102202000c2851300982f403034f524318"
)
END = b"\x11\x00\x00"


def test_a_file_by_spark() -> None:
    source = pa.BufferReader(BY_SPARK)
    read_sound_tail(source, "x")
    found = read_orc_footer(
        pa.BufferReader(BY_SPARK), [FooterColumn(("id",), t.LONG), FooterColumn(("d",), t.Decimal(20, 2))]
    )
    assert found.columns == {
        ("id",): ColumnStats(t.LONG, 0, 4, 0),
        ("d",): ColumnStats(t.Decimal(20, 2), Decimal(0), Decimal(6), 0),
    }
    assert orc.ORCFile(source).read(["id"]).column(0).to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("stream", "plain"), [
    (END, b""),
    (b"\x15abcd" + END, b"abcd"),
    # Literals of which four more are said, then of a zero that stands for 15 and bytes behind it.
    (b"\x04" + b"abcdefg" + END, b"abcdefg"),
    (b"\x00\x01" + bytes(19) + END, bytes(19)),
    (b"\x00\x00\x01" + bytes(274) + END, bytes(274)),
    # Three bytes of one back, which reach into themselves; then two literals.
    (b"\x12a" + b"\x42\x00bc" + END, b"aaaabc"),
    (b"\x15abcd" + b"\x4c\x00" + END, b"abcdabc"),
    # Eight and more.
    (b"\x15abcd" + b"\xec\x00" + END, b"abcdabcdabcd"),
    (b"\x12a" + b"\x27\x00\x00" + END, b"a" * 10),
    (b"\x12a" + b"\x20\x01\x00\x00" + END, b"a" * 35),
    (b"\x12a" + b"\x20\x00\x02\x00\x00" + END, b"a" * 291),
    # Two bytes behind one to three literals, three behind more.
    (b"\x13ab" + b"\x04\x00" + END, b"abab"),
    (b"\x00" + b"\x00" * 8 + b"\x03" + bytes(2061) + b"\x00\x00" + END, bytes(2064)),
    # Beyond 16 kB.
    (b"\x00" + b"\x00" * 64 + b"\x2f" + b"xyz" + bytes(16_382) + b"\x11\x04\x00" + END, b"xyz" + bytes(16_382) + b"xyz"),
])  # fmt: skip
def test_instructions(stream: bytes, plain: bytes) -> None:
    assert decompress_lzo(stream, len(plain)) == plain
    for cut in range(len(stream) - len(END), len(stream)):
        with pytest.raises((ValueError, IndexError)):
            decompress_lzo(stream[:cut], len(plain))
    if plain:
        with pytest.raises(ValueError, match="grow"):
            decompress_lzo(stream, len(plain) - 1)


def test_distances_before_the_begin() -> None:
    with pytest.raises(ValueError, match="beyond"):
        decompress_lzo(b"\x12a\x42\x01" + END, 100)


def test_anything_ends_within_the_bound() -> None:
    random = Random(1)
    ended = 0
    for _ in range(3000):
        stream = bytes(
            random.choice((0, 1, 17, 18, 64, 255, random.randrange(256))) for _ in range(random.randrange(30))
        )
        try:
            assert len(decompress_lzo(stream + random.choice((b"", END)), 1000)) <= 1000
            ended += 1
        except (ValueError, IndexError):
            continue
    assert ended > 50
