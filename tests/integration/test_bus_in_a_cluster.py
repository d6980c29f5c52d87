"""The guarantees of the bus hold in a cluster of three servers as well."""

from __future__ import annotations

from collections.abc import Iterator

import nats
import pytest

from shared.bus import streams
from shared.bus.client import Bus
from shared.bus.run_book import RunBook
from shared.domain.spec import RunSpec
from shared.runtime.settings import Settings
from tests.integration import nats_server
from tests.integration.arena import connect, eventually, wipe
from tests.integration.conftest import settings_for
from tests.integration.nats_server import NatsServer

# Collected here once more, with the fixtures below.
from tests.integration.test_bus import (  # noqa: F401
    other,
    test_a_conditional_publish_whose_answer_is_lost_succeeds,
    test_a_message_id_that_is_known_is_not_stored_again,
    test_a_publish_whose_answer_is_lost_is_repeated_and_stored_once,
    test_a_sequence_whose_messages_were_purged_is_a_conflict,
    test_a_stored_message_is_found_although_newer_ones_follow,
    test_an_equal_batch_of_another_publisher_counts_as_stored,
    test_the_second_of_two_publishers_gets_a_conflict,
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[NatsServer]]:
    with nats_server.running_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
async def settings(servers: list[NatsServer]) -> Settings:
    """Settings for a cluster without streams, in which each will have three replicas."""
    urls = [server.url for server in servers]
    client = await nats.connect(urls, user=nats_server.USER, password=nats_server.PASSWORD)

    async def wiped() -> bool:
        try:
            await wipe(client)
        except nats.errors.Error:  # until the nodes have found each other
            return False
        return True

    await eventually(wiped)
    await client.close()
    return settings_for(",".join(urls)).model_copy(update={"nats_replicas": 3})


async def test_streams_and_runs_are_kept_on_three_servers(bus: Bus) -> None:
    for config in streams.streams(bus.settings):
        info = await bus.jetstream.stream_info(config.name)
        assert info.config.num_replicas == 3


async def test_a_run_is_known_at_every_server_as_soon_as_it_is_started(
    servers: list[NatsServer], settings: Settings, bus: Bus
) -> None:
    """A server that lags must not say that there is no such run: its tasks would be rejected."""
    buses = [
        await connect(settings.model_copy(update={"nats_url": server.url})) for server in servers
    ]
    books = [RunBook(each.jetstream) for each in buses]
    for number in range(30):
        record = await books[number % 3].create(RunSpec.parse({"schedulers": ["greedy"]}))
        for book in books:
            assert await book.get(record.run) == record
            assert record in await book.refresh()
    for each in buses:
        await each.broker.stop()
