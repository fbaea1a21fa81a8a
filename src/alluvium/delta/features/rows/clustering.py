"""clustering: rows that lie near each other by some columns' values.

Specification: "Clustered Table". Readers have nothing to obey: clustered files simply have narrow statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from alluvium.delta.features.feature import Feature
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import DomainMetadata
from alluvium.errors import DECODE_ERRORS, CorruptTable

DOMAIN = "delta.clustering"


def clustering_domain(columns: Sequence[tuple[str, ...]]) -> DomainMetadata:
    """The domain that names the clustering columns by their physical paths.

    Specification: "Clustered Table": columns are named by their physical names, one array a column.
    """
    document = {"clusteringColumns": [list(path) for path in columns], "domainName": DOMAIN}
    return DomainMetadata(domain=DOMAIN, configuration=msgspec.json.encode(document).decode(), removed=False)


def clustering_columns(domains: Mapping[str, DomainMetadata], config: TableConfig) -> tuple[tuple[str, ...], ...]:
    """The clustering columns by their logical paths; none where the table has none.

    Raises:
        CorruptTable: The domain does not parse (`invalid-clustering`).
    """
    if DOMAIN not in domains:
        return ()
    logical = {physical: path for path, physical in config.physical_paths.items()}
    try:
        found = msgspec.json.decode(domains[DOMAIN].configuration, type=_Clustering)
    except DECODE_ERRORS as error:
        raise CorruptTable(f"the domain {DOMAIN} is damaged: {error}", code="invalid-clustering") from None
    return tuple(logical.get(path, path) for path in found.clusteringColumns)


class _Clustering(msgspec.Struct):
    clusteringColumns: tuple[tuple[str, ...], ...] = ()


FEATURE = Feature(name="clustering", reader=False, spec="Clustered Table", requires=("domainMetadata",))
