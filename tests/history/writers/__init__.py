"""An engine each: it carries acts out on a table, one commit an act.

Must not live here: an import of the project in what other engines' Python runs (`deltalake_writer`, `spark_writer`,
`loop`).
"""
