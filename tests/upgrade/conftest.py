"""The real NATS and ClickHouse of the integration tests, and recordings of older versions."""

from __future__ import annotations

import pytest

from tests.integration.conftest import *  # noqa: F403
from tests.upgrade.recording import FOLDERS, Recording


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def old(request: pytest.FixtureRequest) -> Recording:
    return Recording(request.param)
