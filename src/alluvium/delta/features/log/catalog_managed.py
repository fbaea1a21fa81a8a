"""catalogManaged: tables whose catalog, not their log directory, says which commits count. Refused.

Specification: "Catalog-managed tables": "Readers must discover the table using catalog calls, which happens before the
table's protocol is known. Readers must contact the catalog for information about unpublished ratified commits." What
lies in `_delta_log` may be behind, so that reading by path alone would show an old version as the newest.
"""

from __future__ import annotations

from alluvium.delta.features.feature import Feature

FEATURE = Feature(
    name="catalogManaged",
    reader=True,
    spec="Catalog-managed tables",
    # What drafts called it.
    aliases=("catalogManaged-preview", "catalogOwned", "catalogOwned-preview"),
    readable=False,
    writable=False,
    refusal="the table's catalog decides which commits count, and only it knows the newest ones: the files alone may "
    "be out of date; read the table by name through an engine that is connected to its catalog",
)
