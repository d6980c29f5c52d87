from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers.cluster import Cluster, build_image


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests; each starts runs of its own."""
    build_image()
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start()
        made.wait_until_healthy()
        yield made
    finally:
        made.stop()
