"""Names and texts with `${...}`, which Spark's parser would put values in place of."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from alluvium.errors import UnsupportedFeature
from alluvium.spark.naming.names import quote, quote_text
from alluvium.spark.naming.sql_text import sql_column

NAME = "${env:HOME}`$ {x}"


def test_names_and_texts_are_what_they_are(spark: SparkSession) -> None:
    member = sf.struct(sf.lit(2).alias(NAME), sf.lit(3).alias("x"))
    rows = spark.range(1).select(sf.lit(1).alias(NAME), member.alias("s"), sf.array(member).alias("ar")).alias("a")
    own = quote(NAME)
    wanted = {
        own: 1,
        f"{own} + s.{own}": 3,
        f"a.{own} + s.x": 4,
        f"transform(ar, e -> e.{own} + e.x)[0]": 5,
        f"forall(ar, e0 -> e0.{own} is not null) and {own} = 1": True,
        f"concat('{NAME}', {quote_text(NAME)})": NAME * 2,
        f"row_number() over (partition by {own} order by {own} desc)": 1,
        f"{own} as {quote('${env:PATH}')}": 1,
    }
    got = rows.select(*map(sql_column, wanted))
    assert list(got.first() or ()) == list(wanted.values())
    assert got.columns[-1] == "${env:PATH}"
    with pytest.raises(UnsupportedFeature) as caught:
        sql_column(f"cast(null as struct<{own}: int>)")
    assert caught.value.code == "unsupported-name"


@pytest.mark.parametrize(
    "text", ["", "it's", "a\\b", "\\'", "${env:HOME}", "'${env:HOME}'", "ä\n\t$ { ${", "$", "\\u0041"]
)
@pytest.mark.parametrize("escaped", ["true", "false"])
def test_a_constant_is_the_text(spark: SparkSession, text: str, escaped: str) -> None:
    key = "spark.sql.parser.escapedStringLiterals"
    spark.conf.set(key, escaped)
    try:
        assert spark.range(1).select(sf.expr(quote_text(text))).collect() == [(text,)]
    finally:
        spark.conf.unset(key)
