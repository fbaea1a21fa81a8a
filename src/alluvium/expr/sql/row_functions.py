"""Spark SQL's functions that depend on nothing but their arguments: what SQL in a table's log may call.

Left out, besides aggregates, windows and generators: what differs from call to call (`rand`, `uuid`), what depends on
the job (`input_file_name`, `spark_partition_id`) or the session (`current_catalog`, `getvariable`), and what reaches
out of the row (`reflect`, `java_method`, and `from_xml`, whose options name files to open).
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: What the reference lists for generated columns: neither all that it accepts when a table is made (casts as functions,
#: `len`), nor all that it computes afterwards.
GENERATION = _names(
    """
    abs coalesce greatest if iff isnan ifnull isnull isnotnull least nanvl nullif nvl nvl2 when acos acosh asin asinh
    atan atan2 atanh bin bround cbrt ceil ceiling cos cosh conv degrees e exp expm1 floor factorial hex hypot log log10
    log1p log2 ln mod negative pi pmod positive pow power radians rint round shiftleft shiftright shiftrightunsigned
    sign signum sin sinh str_to_map sqrt tan cot tanh ascii char chr base64 bit_length char_length character_length
    concat_ws decode elt encode find_in_set format_number format_string get_json_object initcap instr lcase length
    levenshtein like lower octet_length locate lpad ltrim parse_url position charindex printf regexp_extract
    regexp_replace regexp_like repeat replace overlay rlike rpad rtrim sentences soundex space split substr substring
    left right substring_index translate trim ucase unbase64 unhex upper xpath xpath_boolean xpath_double xpath_number
    xpath_float xpath_int xpath_long xpath_short xpath_string add_months datediff date_add date_format date_sub day
    dayofyear dayofmonth from_unixtime from_utc_timestamp hour last_day minute month months_between next_day quarter
    second to_timestamp to_date to_unix_timestamp to_utc_timestamp trunc date_trunc unix_timestamp dayofweek weekday
    weekofyear year make_date make_timestamp make_interval date_part extract array array_contains arrays_overlap
    array_intersect array_join array_position array_sort array_except array_union map named_struct struct element_at
    map_from_arrays map_keys map_values map_entries map_from_entries map_concat size slice cardinality arrays_zip
    sort_array array_min array_max reverse concat flatten sequence array_repeat array_remove array_distinct crc32 md5
    hash xxhash64 sha sha1 sha2 typeof bit_count to_json from_json schema_of_json from_csv schema_of_csv to_csv
    timestampadd dateadd date_diff timestampdiff datepart
    """
)

_FURTHER = _names(
    """
    aggregate array_append array_compact array_insert array_prepend array_size assert_true btrim
    contains convert_timezone csc date_from_unix_date dayname endswith equal_null
    exists filter forall get getbit ilike is_valid_utf8 is_variant_null isnotnull json_array_length
    json_object_keys len luhn_check make_dt_interval make_timestamp_ltz make_timestamp_ntz make_valid_utf8
    make_ym_interval map_contains_key map_filter map_zip_with mask monthname parse_json raise_error
    reduce regexp_count regexp_extract_all regexp_instr regexp_substr sec split_part startswith
    timestamp_micros timestamp_millis timestamp_seconds to_binary to_char to_number to_timestamp_ltz to_timestamp_ntz
    to_varchar to_variant_object transform transform_keys transform_values try_add try_divide
    try_element_at try_mod try_multiply try_parse_json try_subtract try_to_binary try_to_date try_to_number
    try_to_timestamp try_url_decode try_validate_utf8 try_variant_get unix_date unix_micros unix_millis unix_seconds
    url_decode url_encode validate_utf8 variant_get width_bucket zip_with zeroifnull nullifzero try_make_timestamp
    collate collation bigint binary boolean date decimal double float int smallint string
    timestamp tinyint
    """
)

#: Functions whose value is that of the row alone.
ROW = GENERATION | _FURTHER
#: Functions whose value is the same for all rows of a job, but not for all jobs.
JOB = _names(
    "current_date curdate current_timestamp now localtimestamp current_time current_timezone current_user user "
    "session_user"
)

#: Of JOB and beyond, what Spark calls where the bare name is no column.
NILADIC = _names(
    "current_date current_timestamp localtimestamp current_time current_user user session_user current_catalog "
    "current_database current_schema current_path"
)
#: Words of the language that may stand before a parenthesis.
CONSTRUCTS = _names(
    "and or not in is case when then else between like ilike rlike regexp all any some as cast try_cast distinct div "
    "from for escape to by interval array map struct decimal dec numeric char character varchar if both leading "
    "trailing"
)
#: Words before a text that say what the text is: `date'2024-01-01'`, `x'00'`.
TYPED = _names("date timestamp timestamp_ntz timestamp_ltz time interval x")
#: Words that may stand alone, besides the columns: constants, types, and units of time.
WORDS = (CONSTRUCTS - {"from"}) | _names(
    """
    true false null unknown end placing collate
    boolean tinyint byte smallint short int integer bigint long float real double date timestamp timestamp_ntz
    timestamp_ltz time string binary interval variant
    year years quarter month months week weeks day days dayofyear hour hours minute minutes second seconds millisecond
    milliseconds microsecond microseconds nanosecond nanoseconds
    """
)
#: Words with which a query, a script or a window begins.
QUERY_WORDS = _names("select with table values using over lateral describe show call")
