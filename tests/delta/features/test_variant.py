"""variantType. Specification: "Variant Data Type"."""

from __future__ import annotations

import pytest

from alluvium.delta.features.registry import ensure_readable_protocol
from alluvium.delta.spec import Protocol
from alluvium.errors import UnsupportedFeature


@pytest.mark.parametrize("name", ["variantType", "variantType-preview"])
def test_refused_with_a_reason(name: str) -> None:
    listed = (name, "variantShredding-preview")
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=listed, writer_features=listed)
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_readable_protocol(protocol)
    assert set(caught.value.features) == set(listed)
    assert "variant" in (caught.value.hint or "")
