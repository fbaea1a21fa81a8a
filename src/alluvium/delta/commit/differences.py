"""What two configurations of a table say differently, as texts for people."""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.delta.terms.config import TableConfig
from alluvium.schema.walk import fields_within


def differences(before: TableConfig | None, after: TableConfig) -> Mapping[str, tuple[str | None, str | None]]:
    """Name of each difference to the texts before and after; None where there is nothing."""
    old, new = ({} if before is None else describe(before)), describe(after)
    return {name: (old.get(name), new.get(name)) for name in {**old, **new} if old.get(name) != new.get(name)}


def describe(config: TableConfig) -> dict[str, str]:
    """A configuration as texts by name: `protocol`, `schema`, `comment of x`, `property y`, ..."""
    protocol, metadata = config.protocol, config.metadata
    features = ", ".join(protocol.writer_features or ())
    versions = f"{protocol.min_reader_version}/{protocol.min_writer_version}"
    texts = {
        "protocol": f"{versions} {features}".strip(),
        "schema": config.schema.tree(),
        "partition columns": ", ".join(config.partition_columns),
        "comment": metadata.description or "",
    }
    for path, f in fields_within(config.schema):
        if "comment" in f.metadata:
            texts[f"comment of {'.'.join(path)}"] = str(f.metadata["comment"])
    texts.update({f"property {name}": value for name, value in metadata.configuration.items()})
    return {name: text for name, text in texts.items() if text}
