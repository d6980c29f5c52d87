from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers.cluster import Cluster, build_image


@pytest.fixture(scope="module")
def cluster(made: Cluster) -> Iterator[Cluster]:
    """The one that the module has made, for all its tests; each starts runs of its own."""
    build_image()
    try:
        made.start()
        made.wait_until_healthy()
        yield made
    finally:
        made.stop()
