"""Paimon schemas: types, `schema-N` files of every version, changes as values. Public, and pure: no storage, no rows.

from alluvium.paimon.schema import SchemaChange, TableSchema

schema = TableSchema.parse(data)
schema.apply([SchemaChange.add_column("price", "DECIMAL(10, 2)")]).format()

Must not live here: where schema files lie and how they are published (`paimon.log.schema_log`).
"""

from alluvium.paimon.schema.changes import Move, SchemaChange
from alluvium.paimon.schema.numbering import number_fields
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.type_json import format_type, parse_type
from alluvium.paimon.schema.types import DataField, DataType

__all__ = [
    "DataField",
    "DataType",
    "Move",
    "SchemaChange",
    "TableSchema",
    "add_column",
    "drop_column",
    "drop_primary_key",
    "format_type",
    "number_fields",
    "parse_type",
    "remove_option",
    "rename_column",
    "set_option",
    "update_column_comment",
    "update_column_default",
    "update_column_nullability",
    "update_column_position",
    "update_column_type",
    "update_comment",
]

add_column = SchemaChange.add_column
drop_column = SchemaChange.drop_column
drop_primary_key = SchemaChange.drop_primary_key
remove_option = SchemaChange.remove_option
rename_column = SchemaChange.rename_column
set_option = SchemaChange.set_option
update_column_comment = SchemaChange.update_column_comment
update_column_default = SchemaChange.update_column_default
update_column_nullability = SchemaChange.update_column_nullability
update_column_position = SchemaChange.update_column_position
update_column_type = SchemaChange.update_column_type
update_comment = SchemaChange.update_comment
