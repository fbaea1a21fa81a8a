"""The table: which condition of delta-spark stands for which code of ours.

Names and SQL states are delta-spark's (`delta-error-classes.json` of its JAR, 4.4) or Spark's, where delta-spark leaves the
case to Spark; classes are what its Python raises, measured by tests/interop/test_errors.py. What comes out of it as a
`Py4JJavaError`, which needs an exception of the JVM, is a `SparkRuntimeException` here.
Codes that are not here have no counterpart: delta-spark does not know the case, or Spark's own words are told on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from alluvium.errors import AlluviumError

#: Classes of `pyspark.errors`, by name.
ANALYSIS = "AnalysisException"
ARGUMENT = "IllegalArgumentException"
ARITHMETIC = "ArithmeticException"
OPERATION = "UnsupportedOperationException"
PARSE = "ParseException"
RUNTIME = "SparkRuntimeException"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """What delta-spark raises.

    Attributes:
        condition: Its name for the case; None: it has only a text.
        state: The SQL state.
        kind: The exception class, of `pyspark.errors` or `delta.exceptions`.
        parameters: Of its message: name to the attribute of our error that has the value.
    """

    condition: str | None
    state: str | None
    kind: str = ANALYSIS
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)

    def parameters_of(self, said: Mapping[str, object]) -> dict[str, str]:
        """The parameters whose values an error says."""
        return {name: str(said[from_]) for name, from_ in self.parameters.items() if said.get(from_) is not None}


@dataclass(frozen=True, slots=True)
class Row:
    """When it is that one.

    Attributes:
        code: Ours.
        counterpart: Theirs.
        doors: Where it was raised: methods of DeltaTable, `merge` (its builder), `create` (of tables), `load`, `table`,
            `save`, `saveAsTable`, `insertInto`, `writeTo`, `readStream`, `writeStream`, `stream` (a query that runs),
            `sql`, and of its statements `query`: those that read or change rows, `changes` (`table_changes`),
            `clusterBy`, `replaceColumns`, `restore` (what is restored), `path` (VACUUM, OPTIMIZE and DESCRIBE HISTORY of a path), `reorg`; none: anywhere.
        says: Words of our message, where one code stands for several conditions.
    """

    code: str
    counterpart: Counterpart
    doors: tuple[str, ...] = ()
    says: str = ""


def _row(
    code: str,
    condition: str | None,
    state: str | None,
    kind: str = ANALYSIS,
    *,
    at: str = "",
    says: str = "",
    **parameters: str,
) -> Row:
    return Row(code, Counterpart(condition, state, kind, parameters), tuple(at.split()), says)


_DML = "delete update merge"
_BY_NAME = "saveAsTable writeTo create"

#: The first row that fits counts.
ROWS: tuple[Row, ...] = (
    # --- files written anew
    _row("predicate-on-data", "DELTA_NON_PARTITION_COLUMN_REFERENCE", "42P10", columnName="column"),
    _row("invalid-zorder-column", "DELTA_ZORDERING_ON_PARTITION_COLUMN", "42P10", ARGUMENT, says="is a partition column", colName="column"),
    _row("invalid-zorder-column", "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST", "42703", ARGUMENT, says="there is no column", columnName="column"),
    _row("invalid-zorder-column", "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS", "KD00D", says="there are no statistics", cols="column"),
    _row("clustered-table", "DELTA_CLUSTERING_WITH_ZORDER_BY", "42613", says="ZORDER BY of"),
    _row("clustered-table", "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE", "0A000", OPERATION, says="WHERE of"),
    _row("clustered-table", "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED", "42601", OPERATION, says="OPTIMIZE FULL"),
    # --- streams
    _row("different-table", "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "55019", RUNTIME),
    _row("invalid-offset", "DELTA_INVALID_SOURCE_OFFSET_FORMAT", "XXKDS", RUNTIME),
    _row("stream-lost-data", "DELTA_MISSING_FILES_UNEXPECTED_VERSION", "42K03", RUNTIME, startVersion="version"),
    _row("stream-source-changed", "DELTA_SOURCE_TABLE_IGNORE_CHANGES", "0A000", OPERATION, version="version", dataPath="url"),
    _row("stream-source-deleted", "DELTA_SOURCE_IGNORE_DELETE", "0A000", OPERATION, removedFile="path", version="version", dataPath="url"),
    _row("stream-columns-remapped", "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG", "42KD4", RUNTIME),
    _row("stream-schema-changed", "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS", "KD007", RUNTIME, says="told where to start", version="version"),
    _row("stream-schema-changed", "DELTA_SCHEMA_CHANGED_WITH_VERSION", "KD007", RUNTIME, version="version"),
    _row("table-changed", "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", "KD007"),
    _row("stream-metadata-changed", "DELTA_STREAMING_METADATA_EVOLUTION", "22000", RUNTIME),
    _row("stream-change-not-agreed", "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION", "KD002", RUNTIME, currentSchemaChangeVersion="version"),
    _row("tracking-location-outside", "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT", "22000", schemaTrackingLocation="path"),
    _row("tracking-location-conflict", "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT", "22000", RUNTIME, loc="path", table="url"),
    _row("tracking-log-damaged", "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED", "22000", RUNTIME, location="path"),
    _row("tracking-log-of-other-table", "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID", "22000", RUNTIME),
    _row("tracking-log-too-late", "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA", "22000", RUNTIME, b="version"),
    _row("schema-given", "DELTA_READ_SOURCE_SCHEMA_CONFLICT", "42K07", at="readStream"),
    _row("contradicting-options", "_LEGACY_ERROR_TEMP_1188", None, at="readStream writeStream", says="a 'path' option set"),
    _row("contradicting-options", "_LEGACY_ERROR_TEMP_1306", None, at="load", says="a 'path' option set"),
    _row("contradicting-options", "_LEGACY_ERROR_TEMP_1307", None, at="save", says="a 'path' option set"),
    _row("stream-as-of", "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS", "0AKDC"),
    _row("unsupported-output-mode", "DELTA_UNSUPPORTED_OUTPUT_MODE", "0AKDC"),
    _row("void-column", "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE", "42P18"),
    _row("version-and-timestamp", "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET", "42613", ARGUMENT, at="readStream", says="startingVersion or"),
    _row("invalid-option", "DELTA_REGEX_OPT_SYNTAX_ERROR", "2201B", ARGUMENT, at="readStream", says="excludeRegex"),
    _row("not-a-table", "DELTA_SCHEMA_NOT_SET", "KD008", at="readStream"),
    _row("missing-version", "DELTA_VERSION_NOT_FOUND", "22003", at="stream", says="the start version", userVersion="version"),
    _row("missing-version", "DELTA_VERSION_NOT_FOUND", "22003", at="stream", says="is no longer in the log", userVersion="version"),
    _row("missing-version", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "42816", at="stream"),
    # --- clones
    _row("table-exists", "DELTA_TABLE_ALREADY_EXISTS", "42P07", at="clone", says="already exists"),
    _row("table-exists", "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "42601", at="clone", tableLocation="url"),
    _row("not-a-table", "DELTA_CANNOT_REPLACE_MISSING_TABLE", "42P01", at="clone", says="to replace"),
    _row("not-a-table", "TABLE_OR_VIEW_NOT_FOUND", "42P01", at="clone", says="to clone"),
    _row("unsupported-clone-source", "DELTA_CLONE_UNSUPPORTED_SOURCE", "0AKDC"),
    # --- statements of SQL
    _row("expects-table", "DELTA_ONLY_OPERATION", "0AKDD", at="restore"),
    _row("expects-table", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "42809"),
    _row("invalid-partition-column", "NON_PARTITION_COLUMN", "42000", at="query", says="PARTITION names", columnName="column"),
    _row("unsupported-statement", "UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS", "0A000", says="INSERT OVERWRITE ... IF NOT EXISTS"),
    _row("unsupported-statement", "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED", "0AKDC", says="TRUNCATE TABLE ... PARTITION"),
    _row("unsupported-statement", "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED", "42601", says="whose log has the partitions"),
    _row("unsupported-statement", "DELTA_OPERATION_NOT_ALLOWED", "0AKDC", says="INSERT OVERWRITE DIRECTORY"),
    _row("unsupported-statement", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", "0A000", says="is not for Delta tables"),
    _row("schema-mismatch", "DELTA_INSERT_COLUMN_MISMATCH", "42802", at="query", says="is not given", columnName="column"),
    _row("invalid-data", "CAST_OVERFLOW_IN_TABLE_INSERT", "22003", ARITHMETIC, at="query", says="[CAST_OVERFLOW]"),
    _row("invalid-data", "CAST_OVERFLOW_IN_TABLE_INSERT", "22003", ARITHMETIC, at="query", says="[NUMERIC_VALUE_OUT_OF_RANGE"),
    _row("schema-mismatch", "DELTA_MISSING_COLUMN", "42703", at="query", says="and the table has no such column", columnName="column"),
    _row("invalid-data", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", "22003", ARITHMETIC, at="update merge", says="[CAST_OVERFLOW]"),
    _row("unsupported-partitioning", "DELTA_OPERATION_NOT_ALLOWED_DETAIL", "0AKDC", at="sql saveAsTable", says="bucketing"),
    _row("contradicting-options", "SORT_BY_WITHOUT_BUCKETING", "42601", says="sortBy sorts"),
    _row("contradicting-options", "PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO", "42601", says="insertInto goes without partitionBy"),
    _row("unsupported-partitioning", "DELTA_OPERATION_NOT_ALLOWED", "0AKDC", at="sql"),
    _row("unsupported-partitioning", "_LEGACY_ERROR_TEMP_1313", None, at="save insertInto", says="bucketBy and sortBy"),
    _row("unsupported-partitioning", "_LEGACY_ERROR_TEMP_1312", None, at="save insertInto", says="bucketBy"),
    _row("unsupported-constraint", "UNSUPPORTED_FEATURE.TABLE_OPERATION", "0A000", at="sql", says="keys"),
    _row("unknown-column", "_LEGACY_ERROR_TEMP_3060", None, at="sql", says="is not in the data", column="column"),
    _row("invalid-partition-column", "_LEGACY_ERROR_TEMP_3058", None, at="sql", says="is named twice"),
    _row("invalid-partition-column", "ALL_PARTITION_COLUMNS_NOT_ALLOWED", "KD005", at="sql", says="by all of its columns"),
    _row("invalid-partition-column", "INVALID_PARTITION_COLUMN_DATA_TYPE", "0A000", at="sql", says="its type is"),
    _row("contradicting-options", "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE", "42000", says="a clustered table cannot be replaced"),
    _row("invalid-identity", "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", "428H2", OPERATION, at="sql", says="must be bigint"),
    _row("invalid-expression", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH", "42K09", at="sql", says="what it is generated as", columnName="column"),
    _row("invalid-expression", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "42621", at="sql", says="not deterministic", fieldName="column"),
    _row("invalid-expression", "INVALID_DEFAULT_VALUE.NOT_CONSTANT", "42623", at="sql", says="the default of column", colName="column"),
    _row("schema-given", "_LEGACY_ERROR_TEMP_2242", None, OPERATION, at="query"),
    _row("unsupported-type", "DELTA_UNSUPPORTED_DATA_TYPES", "0AKDC", at="sql", says="no table can hold values of"),
    _row("assigned-twice", "COLUMN_ALREADY_EXISTS", "42711", at="query", says="is given twice", columnName="column"),
    _row("assigned-twice", "DELTA_DUPLICATE_COLUMNS_ON_INSERT", "42701", at="query", says="INSERT sets"),
    _row("schema-mismatch", "DELTA_INSERT_COLUMN_ARITY_MISMATCH", "42802", at="query insertInto", says="not enough columns: the table has"),
    _row("schema-mismatch", "DELTA_INSERT_COLUMN_ARITY_MISMATCH", "42802", at="query", says="not enough fields in"),
    _row("schema-mismatch", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS", "21S01", at="query", says="not enough columns: the statement names"),
    _row("schema-mismatch", "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS", "21S01", at="query", says="too many columns: the statement names"),
    _row("schema-mismatch", "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION", "42K09", at="query", says="you can use the functions"),
    _row("schema-mismatch", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "42K09", at="query", says="Cannot resolve"),
    _row("invalid-condition", "UNSUPPORTED_FEATURE.OVERWRITE_BY_SUBQUERY", "0A000", at="query", says="has a subquery"),
    _row("not-a-table", "PATH_NOT_FOUND", "42K03", at="query update delete merge", says="there is no Delta table here"),
    _row("not-a-table", "DELTA_FILE_NOT_FOUND", "42K03", RUNTIME, at="detail", says="there is nothing at"),
    _row("not-a-table", "DELTA_TABLE_ONLY_OPERATION", "0AKDD", at="path", tableName="url"),
    _row("not-a-table", "DELTA_ONLY_OPERATION", "0AKDD", at="reorg", says="is not a Delta table"),
    _row("not-a-table", "TABLE_OR_VIEW_NOT_FOUND", "42P01", at="sql", says="to replace cannot be found"),
    _row("not-a-table", "TABLE_OR_VIEW_NOT_FOUND", "42P01", at="sql", says="there is no table to replace"),
    _row("not-a-table", "TABLE_OR_VIEW_NOT_FOUND", "42P01", says="there is no table called"),
    _row("missing-version", "DELTA_VERSION_NOT_FOUND", "22003", at="query sql", says="does not exist", userVersion="version"),
    _row("invalid-version", "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "42604", ARGUMENT, at="query", says="is not a version of a table"),
    _row("invalid-path", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY", "0A000", at="query"),
    _row("no-column-mapping", "DELTA_UNSUPPORTED_RENAME_COLUMN", "0AKDC", at="sql", says="renaming a column"),
    _row("unknown-column", "INVALID_FIELD_NAME", "42000", at="sql", says="has no name to change", fieldName="column"),
    _row("unknown-column", "FIELD_NOT_FOUND", "42704", at="sql", says="to stand behind", fieldName="column"),
    _row("unknown-column", "FIELD_NOT_FOUND", "42704", at="query update", says="no such field in", fieldName="column"),
    _row("unknown-database", "SCHEMA_NOT_FOUND", "42704", at="sql"),
    _row("invalid-table-name", "SCHEMA_NOT_FOUND", "42704", at="sql", says="neither a table of a database"),
    _row("invalid-table-name", "INVALID_SCHEMA_OR_RELATION_NAME", "42602", at="sql", says="the catalog takes no table"),
    _row("no-columns", "DELTA_SCHEMA_NOT_PROVIDED", "42908", at="sql", says="takes the place of another"),
    _row("table-exists", "DELTA_CANNOT_WRITE_INTO_VIEW", "0A000", at="sql", says="is a view, which no Delta table replaces"),
    _row("table-exists", "DELTA_NOT_A_DELTA_TABLE", "0AKDD", at="sql", says="which no Delta table replaces"),
    _row("location-mismatch", "DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE", "42613", at="sql", says="names another place"),
    _row("location-mismatch", "DELTA_TABLE_LOCATION_MISMATCH", "42613", at="sql", tableName="url"),
    _row("table-exists", "DELTA_CREATE_TABLE_SCHEME_MISMATCH", "42KD7", at="sql create", says="has other columns", path="url"),
    _row("table-exists", "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING", "42KD7", at="sql create", says="has other partition columns", path="url"),
    _row("table-exists", "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING", "42KD7", at="sql create", says="has other clustering columns", path="url"),
    _row("table-exists", "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY", "42KD7", at="sql create", says="has other properties", path="url"),
    _row("table-exists", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07", at="sql"),
    _row("changed-view", "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION", "KD002", says="a version of the table that was asked for"),
    _row("changed-view", "DELTA_UNEXPECTED_PARTIAL_SCAN", "KD00A", says="some of the table's rows alone"),
    _row("changed-view", "DELTA_UNSUPPORTED_SOURCE", "0AKDD"),
    _row("not-delta", "DELTA_ONLY_OPERATION", "0AKDD"),
    # --- what is not there
    _row("not-a-table", "PATH_NOT_FOUND", "42K03", at="load table"),
    _row("not-a-table", "TABLE_OR_VIEW_NOT_FOUND", "42P01", at="create writeTo convertToDelta"),
    _row("not-a-table", "DELTA_MISSING_DELTA_TABLE", "42P01", tableName="url"),
    _row("missing-version", "DELTA_CANNOT_RESTORE_TABLE_VERSION", "22003", at="restoreToVersion", version="version"),
    _row("missing-version", "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER", "22003", at="restoreToTimestamp", says="before the first"),
    _row("missing-version", "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER", "22003", at="restoreToTimestamp", says="after the newest"),
    _row("missing-version", "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", "42816", says="before the first version"),
    _row("missing-version", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "42816", says="after the newest version"),
    _row("missing-version", "DELTA_CDC_START_VERSION_AFTER_LATEST", "22003", ARGUMENT, says="the start version"),
    _row("missing-version", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "42816", says="lies after the latest version"),
    _row("missing-version", "DELTA_VERSION_NOT_FOUND", "22003", at="load table clone", userVersion="version"),
    _row("missing-file", None, None, ARGUMENT, at="restoreToVersion restoreToTimestamp"),
    _row("missing-file", "FAILED_READ_FILE.FILE_NOT_EXIST", "KD001", RUNTIME, path="path"),
    # --- points in time, and changes
    _row("invalid-version", "DELTA_CANNOT_RESTORE_TABLE_VERSION", "22003", at="restoreToVersion"),
    _row("invalid-version", "DELTA_ILLEGAL_OPTION", "42616", ARGUMENT, says="txnVersion must be"),
    _row("invalid-version", "DELTA_LOG_FILE_NOT_FOUND", "42K03", RUNTIME, at="changes", says="start must not be negative"),
    _row("invalid-version", "DELTA_VERSION_NOT_FOUND", "22003", at="load table", says="must not be negative"),
    _row("invalid-version", "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "42604", ARGUMENT, at="load table"),
    _row("invalid-timestamp", "DELTA_TIMESTAMP_INVALID", "42816"),
    _row("version-and-timestamp", "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS", "42613", says="names a point in time"),
    _row("version-and-timestamp", "DELTA_ONEOF_IN_TIMETRAVEL", "42601", ARGUMENT),
    _row("schema-given", "DELTA_UNSUPPORTED_SCHEMA_DURING_READ", "0AKDC", OPERATION),
    _row("change-feed-disabled", "DELTA_MISSING_CHANGE_DATA", "KD002", version="version"),
    _row("no-start-of-changes", "DELTA_NO_START_FOR_CDC_READ", "42601"),
    _row("invalid-range", "DELTA_INVALID_CDC_RANGE", "22003", ARGUMENT, at="load table changes"),
    _row("invalid-argument", "DELTA_CDC_READ_NULL_RANGE_BOUNDARY", "22004", ARGUMENT, at="query", says="not NULL"),
    _row("changes-as-of", "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS", "0AKDC"),
    _row("incompatible-schema", "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE", "0AKDC", OPERATION),
    # --- logs, and what they ask for
    _row("gap-in-log", "DELTA_TRUNCATED_TRANSACTION_LOG", "42K03", RUNTIME, says="the first commit there is", path="path"),
    _row("gap-in-log", "DELTA_VERSIONS_NOT_CONTIGUOUS", "KD00C", RUNTIME),
    _row("no-protocol", "DELTA_STATE_RECOVER_ERROR", "XXKDS", RUNTIME),
    _row("no-metadata", "DELTA_STATE_RECOVER_ERROR", "XXKDS", RUNTIME),
    _row("damaged-line", "FAILED_READ_FILE.NO_HINT", "KD001", RUNTIME, path="path"),
    _row("unsupported-feature", "DELTA_UNSUPPORTED_FEATURES_FOR_READ", "56038", RUNTIME, says="cannot be read without", tableNameOrPath="url"),
    _row("unsupported-feature", "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE", "56038", RUNTIME, says="cannot be written without", tableNameOrPath="url"),
    _row("unsupported-feature", "DELTA_INVALID_PROTOCOL_VERSION", "KD004", RUNTIME, says="the specification ends at", tableNameOrPath="url"),
    # --- tables to create
    _row("no-path", "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION", "42601", at="create"),
    _row("no-path", None, None, ARGUMENT),
    _row("table-exists", "DELTA_PATH_EXISTS", "42K04", at="save", path="url"),
    _row("table-exists", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07", at=_BY_NAME),
    _row("format-of-table", "_LEGACY_ERROR_TEMP_1159", None, at="saveAsTable"),
    _row("location-not-empty", "DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG", "42K03", says="no columns are told", path="url"),
    _row("location-not-empty", "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "42601", tableLocation="url"),
    _row("invalid-type", "UNSUPPORTED_DATATYPE", "0A000", PARSE, says="unknown type"),
    _row("invalid-type", "PARSE_SYNTAX_ERROR", "42601", PARSE),
    _row("invalid-identity", "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE", "428H2", OPERATION, at="create"),
    _row("duplicate-column", "DELTA_DUPLICATE_COLUMNS_FOUND.DATA", "42711", at="save saveAsTable", duplicateCols="column"),
    _row("duplicate-column", "COLUMN_ALREADY_EXISTS", "42711", columnName="column"),
    _row("invalid-column-name", "DELTA_INVALID_PARTITION_COLUMN_NAME", "42996", says="partition column"),
    _row("invalid-column-name", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", "42K05", invalidColumnNames="column"),
    _row("invalid-partition-column", "ALL_PARTITION_COLUMNS_NOT_ALLOWED", "KD005", at="create", says="by all of its columns"),
    _row("invalid-partition-column", "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED", "42601", says="by the identity column", colName="column"),
    _row("invalid-partition-column", "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION", "428FT", says="by all of its columns"),
    _row("invalid-partition-column", "DELTA_INVALID_PARTITION_COLUMN_TYPE", "42996", says="its type is", name="column"),
    _row("invalid-partition-column", "DELTA_DUPLICATE_COLUMNS_FOUND.DATA", "42711", says="is named twice"),
    _row("unknown-column", "DELTA_PARTITION_COLUMN_NOT_FOUND", "42703", says="partition column", columnName="column"),
    _row("unknown-column", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "42703", at="create clusterBy", columnName="column"),
    _row("unknown-clustering-column", "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED", "0A000", at="sql", cols="column"),
    _row("unknown-clustering-column", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "42703", columnName="column"),
    _row("invalid-clustering-column", "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", "54000", says="at most"),
    _row("invalid-clustering-column", "DELTA_CLUSTERING_COLUMN_MISSING_STATS", "22000", says="no statistics of it"),
    _row("invalid-clustering-column", "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY", "42711", says="stands twice"),
    _row("contradicting-options", "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED", "42000", says="a partitioned table cannot be clustered"),
    _row("not-an-identity-column", "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN", "429BQ"),
    _row("not-partitioned", "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE", "42809", tableName="url"),
    _row("invalid-partition-column", "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN", "42P10", says="the table is not partitioned by", badCols="column"),
    _row("unknown-mode", "DELTA_MODE_NOT_SUPPORTED", "0AKDC", ARGUMENT),
    _row("manifest-with-vectors", "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS", "0A000", OPERATION),
    _row("manifest-with-mapping", "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING", "0AKDC", OPERATION),
    _row("clustering-column", "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN", "0AKDC", columnList="column"),
    _row("unsupported-change", "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED", "429BQ", says="the type and the default of an identity column"),
    _row("unsupported-change", "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED", "429BQ"),
    _row("ambiguous-change", "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP", "0AKDC"),
    _row("feature-not-enabled", "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED", "0AKDE", says="has a default"),
    _row("unsupported-statement", "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED", "0AKDC", says="cannot have a default"),
    _row("changed-twice", "NOT_SUPPORTED_CHANGE_SAME_COLUMN", "0A000", fieldName="column"),
    _row("invalid-clustering-column", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", "0A000", columnsWithDataTypes="column"),
    _row("contradicting-options", "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY", "42613", says="partitioned or clustered"),
    _row("unknown-property", "DELTA_UNSET_NON_EXISTENT_PROPERTY", "42616", at="unsetProperties"),
    _row("unknown-property", "DELTA_UNKNOWN_CONFIGURATION", "F0000"),
    _row("reserved-property", "DELTA_ADD_CONSTRAINTS", "0A000", says="a constraint is not set as a property"),
    _row("reserved-property", "DELTA_CANNOT_MODIFY_TABLE_PROPERTY", "42939", OPERATION),
    _row("invalid-property", "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE", "KD004", RUNTIME, says="requires writer version 7"),
    _row("invalid-property", "DELTA_INVALID_ISOLATION_LEVEL", "25000", ARGUMENT, says="delta.isolationLevel"),
    _row("invalid-property", "DELTA_INVALID_INTERVAL", "22006", ARGUMENT, says="expected an interval"),
    _row("invalid-property", "DELTA_UNSUPPORTED_FEATURE_STATUS", "0AKDE", RUNTIME, says="expected 'supported'"),
    _row("invalid-property", None, None, OPERATION, says="delta.columnMapping.mode"),
    _row("invalid-property", None, None, ARGUMENT),
    _row("mapping-mode-change", "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", "0AKDC", OPERATION),
    _row("contradicting-properties", "DELTA_UNIVERSAL_FORMAT_VIOLATION", "KD00E", OPERATION, says="delta.universalFormat.enabledFormats names iceberg"),
    _row("iceberg-compat", "DELTA_ICEBERG_COMPAT_VIOLATION", "KD00E", OPERATION),
    # --- generated columns
    _row("invalid-expression", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH", "42K09", at="create", says="what it is generated as", columnName="column"),
    _row("invalid-expression", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN", "42621", at="create", says="not deterministic"),
    _row("invalid-expression", "DELTA_AGGREGATE_IN_GENERATED_COLUMN", "42621", at="create", says="from several rows"),
    _row("invalid-expression", "DELTA_INVALID_GENERATED_COLUMN_REFERENCES", "42621", at="create", says="cannot be resolved"),
    _row("invalid-expression", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "42621", at="create", says="holds a query"),
    # --- rows that do not fit
    _row("append-only", "DELTA_CANNOT_MODIFY_APPEND_ONLY", "42809", OPERATION),
    _row("schema-mismatch", "DELTA_PARTITION_COLUMN_NOT_FOUND", "42703", at="save saveAsTable stream", says="the data lacks the partition column", columnName="column"),
    _row("schema-mismatch", "CANNOT_UP_CAST_DATATYPE", "42846", says="allows no cast that might fail"),
    _row("schema-mismatch", "DELTA_FAILED_TO_MERGE_FIELDS", "22005", says="in the table and", currentField="column", updateField="column"),
    _row("schema-mismatch", "DELTA_DUPLICATE_COLUMNS_FOUND.DATA", "42711", says="more than one column", duplicateCols="column"),
    _row("schema-mismatch", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", "42846", at=_DML, says=": the table has no column"),
    _row("schema-mismatch", "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION", "42846", at=_DML, says=": the data"),
    _row("schema-mismatch", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "42K09", at=_DML),
    _row("schema-mismatch", "DELTA_METADATA_MISMATCH", "42KDG"),
    _row("clustering-mismatch", None, None, ARGUMENT, at="saveAsTable"),
    _row("clustering-mismatch", "DELTA_CLUSTERING_COLUMNS_MISMATCH", "42P10"),
    _row("partition-mismatch", None, None, ARGUMENT, at="saveAsTable", says="rows are not appended by"),
    _row("partition-mismatch", "DELTA_METADATA_MISMATCH", "42KDG"),
    _row("numbers-given", "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED", "42808", says="cannot be changed", colName="column"),
    _row("numbers-given", "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED", "42808", colName="column"),
    _row("not-null-violated", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502", RUNTIME, columnName="column"),
    _row("constraint-violated", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", "23512", at="addConstraint", tableName="url"),
    _row("constraint-violated", "DELTA_REPLACE_WHERE_MISMATCH", "44000", says="constraint 'replaceWhere'"),
    _row("constraint-violated", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001", RUNTIME),
    _row("generated-column-violated", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23001", RUNTIME),
    _row("text-too-long", "EXCEED_LIMIT_LENGTH", "54006", RUNTIME, at="update"),
    _row("text-too-long", "DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "22001", RUNTIME),
    _row("reserved-column", "RESERVED_CDC_COLUMNS_ON_WRITE", "42939", RUNTIME, columnList="column"),
    _row("unsupported-type", "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS", "428GU", says="void columns alone"),
    _row("unsupported-type", "DELTA_GEOSPATIAL_NOT_SUPPORTED", "0AKDC", OPERATION, says="the feature geospatial"),
    _row("unsupported-type", "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE", "0A000", columnName="column"),
    # --- options of writers
    _row("contradicting-options", "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING", "42613", ARGUMENT, says="so that replaceWhere cannot"),
    _row("contradicting-options", "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING", "42613", ARGUMENT, says="so that partitionOverwriteMode cannot"),
    _row("contradicting-options", "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS", "42613", ARGUMENT, says="says which rows are replaced"),
    _row("contradicting-options", "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED", "0A000", ARGUMENT, says="is asked for, and forbidden by"),
    _row("replace-where-data", "DELTA_NON_PARTITION_COLUMN_REFERENCE", "42P10", says="replaceWhere on columns", columnName="column"),
    _row("contradicting-options", "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE", "42613", ARGUMENT, says="exclude each other"),
    _row("contradicting-options", "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE", "42613", ARGUMENT, says="partitionOverwriteMode only"),
    _row("contradicting-options", "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "42616", ARGUMENT, says="txnAppId and txnVersion"),
    _row("contradicting-options", "DELTA_DATA_CHANGE_FALSE", "0AKDE", says="dataChange=false"),
    _row("invalid-option", "DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF", "0AKDC", ARGUMENT, at="forPath"),
    _row("invalid-option", "DELTA_ILLEGAL_OPTION", "42616", ARGUMENT),
    _row("unknown-column", "UNRESOLVED_INSERT_REPLACE_USING_COLUMN", "42703", says="replaceUsing names", columnName="column"),
    _row("unknown-column", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", at="save saveAsTable writeTo", objectName="column"),
    _row("invalid-predicate", "DELTA_FAILED_RECOGNIZE_PREDICATE", "42601", at="save saveAsTable writeTo"),
    # --- DELETE, UPDATE, MERGE
    _row("invalid-expression", "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "42K0E", at="merge", says="not boolean"),
    _row("invalid-expression", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "42K09", says="not boolean"),
    _row("invalid-expression", "DELTA_UNSUPPORTED_SUBQUERY", "0AKDC", says="subqueries are not supported"),
    _row("invalid-expression", "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED", "0AKDC", at="merge", says="it is not deterministic"),
    _row("invalid-expression", "INVALID_NON_DETERMINISTIC_EXPRESSIONS", "42K0E", says="it is not deterministic"),
    _row("invalid-expression", "DELTA_AGGREGATION_NOT_SUPPORTED", "42903", at="merge", says="not computed from one row"),
    _row("invalid-expression", "DELTA_AGGREGATION_NOT_SUPPORTED", "42903", at="merge", says="GROUP BY"),
    _row("invalid-expression", "UNSUPPORTED_EXPR_FOR_OPERATOR", "42K0E", says="not computed from one row"),
    _row("invalid-expression", "UNSUPPORTED_SQL_UDF_USAGE", "0A000", says="a function that is written in SQL"),
    _row("unknown-column", "DELTA_MERGE_UNRESOLVED_EXPRESSION", "42601", at="merge", sqlExpr="column"),
    _row("unknown-column", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703", objectName="column"),
    _row("assigned-twice", "DELTA_DUPLICATE_COLUMNS_ON_INSERT", "42701", at="merge", says="INSERT sets"),
    _row("assigned-twice", "DELTA_CONFLICT_SET_COLUMN", "42701", columnList="column"),
    _row("merge-without-clauses", "DELTA_MERGE_MISSING_WHEN", "42601"),
    _row("unreachable-clause", "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION", "42601", says="NOT MATCHED BY SOURCE"),
    _row("unreachable-clause", "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION", "42601", says="NOT MATCHED"),
    _row("unreachable-clause", "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION", "42601"),
    _row("multiple-matches", "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "21506", OPERATION),
    # --- ALTER TABLE
    _row("not-a-struct", "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE", "0AKDC", at="sql", says="only columns of a struct are dropped"),
    _row("not-a-struct", "INVALID_FIELD_NAME", "42000", at="sql", fieldName="column"),
    _row("not-null-column", "DELTA_OPERATION_NOT_ALLOWED", "0AKDC", at="sql", says="a column that is added cannot be NOT NULL"),
    _row("not-null-column", "_LEGACY_ERROR_TEMP_2330", None, at="sql", says="a nullable column cannot be made NOT NULL", fieldName="column"),
    _row("column-exists", "FIELD_ALREADY_EXISTS", "42710", fieldNames="column"),
    _row("no-column-mapping", "DELTA_UNSUPPORTED_RENAME_COLUMN", "0AKDC", at="renameColumn"),
    _row("no-column-mapping", "DELTA_UNSUPPORTED_DROP_COLUMN", "0AKDC"),
    _row("partition-column", "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN", "0AKDC", columnList="column"),
    _row("last-column", "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA", "0AKDC"),
    _row("type-change", "CANNOT_UPDATE_FIELD.STRUCT_TYPE", "0A000", at="sql", says="a struct is changed field by field", fieldName="column"),
    _row("type-change", "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP", "0AKDC", at="replaceColumns"),
    _row("no-type-widening", "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP", "0AKDC", at="replaceColumns"),
    _row("type-change", "CANNOT_UPDATE_FIELD.ARRAY_TYPE", "0A000", at="sql", says="an array is changed by its element", fieldName="column"),
    _row("type-change", "CANNOT_UPDATE_FIELD.MAP_TYPE", "0A000", at="sql", says="a map is changed by its key or its value", fieldName="column"),
    _row("type-change", "NOT_SUPPORTED_CHANGE_COLUMN", "0A000", at="sql", says="its values need not be any of", originName="column"),
    _row("type-change", "NOT_SUPPORTED_CHANGE_COLUMN", "0A000", at="sql", says="to varchar(", originName="column"),
    _row("type-change", "NOT_SUPPORTED_CHANGE_COLUMN", "0A000", at="sql", says="to char(", originName="column"),
    _row("type-change", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", "0AKDC", fieldPath="column"),
    _row("no-type-widening", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", "0AKDC", fieldPath="column"),
    _row("not-null-column", "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", "0AKDC", fieldPath="column"),
    _row("nested-not-null", "DELTA_NESTED_NOT_NULL_CONSTRAINT", "0AKDC", parent="column"),
    _row("column-in-use", "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", "42K09", says="by the constraint", columnName="column"),
    _row("column-in-use", "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE", "42K09", columnName="column"),
    _row("constraint-exists", "DELTA_CONSTRAINT_ALREADY_EXISTS", "42710"),
    _row("unknown-constraint", "DELTA_CONSTRAINT_DOES_NOT_EXIST", "42704"),
    _row("invalid-constraint", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT", "42621", says="not boolean"),
    _row("invalid-constraint", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT", "42621", says="is not a boolean"),
    _row("invalid-constraint", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT", "42621", says="cannot be enforced"),
    # --- features
    _row("unknown-feature", "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", "0AKDC", RUNTIME, at="dropFeatureSupport"),
    _row("unknown-feature", "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG", "56038", RUNTIME),
    _row("feature-not-supported", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "55000", RUNTIME),
    _row("feature-not-droppable", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "0AKDC", RUNTIME),
    _row("feature-in-use", "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE", "0AKDE", says="there are constraints"),
    _row("feature-in-use", "DELTA_FEATURE_DROP_DEPENDENT_FEATURE", "55000", RUNTIME, says="is needed by"),
    _row("feature-in-history", "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD", "22KD0", RUNTIME),
    _row("feature-without-history", "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED", "42000", RUNTIME),
    # --- VACUUM
    _row("negative-retention", "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE", "22003", ARGUMENT),
    _row("retention-too-short", "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", "22003", ARGUMENT),
    _row("cannot-vacuum-lite", "DELTA_CANNOT_VACUUM_LITE", "55000", RUNTIME),
    _row("invalid-inventory", "DELTA_INVALID_INVENTORY_SCHEMA", "42000"),
    # --- CONVERT TO DELTA
    _row("no-parquet-files", "DELTA_EMPTY_DIRECTORY", "42K03", RUNTIME, directory="url"),
    _row("no-partitions", "DELTA_CONVERSION_NO_PARTITION_FOUND", "42KD6"),
    _row("partition-folders", "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME", "KD009", says="partition columns (", path="path"),
    _row("partition-folders", "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME", "KD009", path="path"),
    _row("partition-value", "DELTA_FAILED_CAST_PARTITION_VALUE", "22018", RUNTIME, value="column"),
    _row("partition-schema", "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER", "KD009"),
    _row("schemas-differ", "DELTA_FAILED_TO_MERGE_FIELDS", "22005", currentField="column", updateField="column"),
    _row("not-parquet", "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER", "KD001", RUNTIME, path="path"),
    _row("row-ids-without-statistics", "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS", "22000"),
    _row("not-convertible", "DELTA_OPERATION_NOT_ALLOWED_DETAIL", "0AKDC", says="is a view"),
    _row("not-convertible", "DELTA_CONVERT_NON_PARQUET_TABLE", "0AKDC"),
    # --- what lost a race
    _row("protocol-changed", "DELTA_PROTOCOL_CHANGED", "2D521", "ProtocolChangedException"),
    _row("metadata-changed", "DELTA_METADATA_CHANGED", "2D521", "MetadataChangedException", tableName="url"),
    _row("table-replaced", "DELTA_METADATA_CHANGED", "2D521", "MetadataChangedException", tableName="url"),
    _row("concurrent-append", "DELTA_CONCURRENT_APPEND.WITHOUT_HINT", "2D521", "ConcurrentAppendException", tableName="url"),
    _row("concurrent-delete-read", "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT", "2D521", "ConcurrentDeleteReadException", tableName="url"),
    _row("concurrent-delete-delete", "DELTA_CONCURRENT_DELETE_DELETE.WITHOUT_HINT", "2D521", "ConcurrentDeleteDeleteException", tableName="url"),
    _row("concurrent-transaction", "DELTA_CONCURRENT_TRANSACTION", "2D521", "ConcurrentTransactionException"),
    _row("concurrent-domain", "DELTA_CONCURRENT_WRITE", "2D521", "ConcurrentWriteException"),
    _row("concurrent-commit", "DELTA_CONCURRENT_WRITE", "2D521", "ConcurrentWriteException"),
    _row("base-expired", "DELTA_CONCURRENT_WRITE", "2D521", "ConcurrentWriteException"),
    _row("attempts-exhausted", "DELTA_MAX_COMMIT_RETRIES_EXCEEDED", "40000", "DeltaConcurrentModificationException", numAttempts="attempts"),
)  # fmt: skip

_BY_CODE: dict[str, list[Row]] = {}
for _each in ROWS:
    _BY_CODE.setdefault(_each.code, []).append(_each)


def find_counterpart(error: AlluviumError, door: str) -> Counterpart | None:
    """What delta-spark raises in the place of an error; None: nothing of its own.

    Args:
        error: Ours.
        door: What was called, see `Row`.
    """
    for row in _BY_CODE.get(error.code, ()):
        if (not row.doors or door in row.doors) and row.says in error.message:
            return row.counterpart
    return None
