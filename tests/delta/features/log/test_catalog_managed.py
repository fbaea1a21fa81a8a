"""catalogManaged. Specification: "Catalog-managed tables"."""

from __future__ import annotations

import pytest

from alluvium.delta.features.registry import ensure_readable_protocol
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import UnsupportedFeature


@pytest.mark.parametrize("name", ["catalogManaged", "catalogManaged-preview", "catalogOwned", "catalogOwned-preview"])
def test_reading_by_path_is_refused_with_a_reason(name: str) -> None:
    """ "Readers must contact the catalog for information about unpublished ratified commits." """
    listed = (name,)
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=listed, writer_features=listed)
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_readable_protocol(protocol)
    assert caught.value.features == (name,)
    assert "catalog" in (caught.value.hint or "")
    assert "out of date" in (caught.value.hint or "")
