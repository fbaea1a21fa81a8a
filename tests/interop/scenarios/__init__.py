"""What users do with Delta tables, written once in delta-spark's own API and run on both engines.

A scenario is a generator: it is handed a `Bench` and yields steps, `name, function`; the runner carries each out and
looks at the table after it. A step that must be refused is a step like any other: both engines refuse it or neither.
The bench's `delta` is the engine's module: `delta.tables` there, `alluvium` here. Nothing else differs, but for changes
that delta-spark has in SQL only (`Bench.alter`).
"""
