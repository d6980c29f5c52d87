"""Three NATS servers in containers, as .env.example says; each is lost for a while."""

from __future__ import annotations

import pytest

from tests.containers.cluster import ROOT, Cluster
from tests.containers.load import Load
from tests.counting import COUNTED, once
from tests.e2e.arena import RULES

NODES = ("nats", "nats-2", "nats-3")
TASKS = 16_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    lines = (ROOT / ".env.example").read_text().partition("# A cluster of three NATS")[2]
    suggested = dict(line[1:].split("=", 1) for line in lines.splitlines() if "=" in line)
    _, *files = suggested["COMPOSE_FILE"].split(":")
    settings = {name: suggested[name] for name in ("HYBRID_NATS_URL", "HYBRID_NATS_REPLICAS")}
    return Cluster(tmp_path_factory.mktemp("cluster"), *files, **settings)


def test_any_node_may_be_down_in_the_middle_of_a_run(cluster: Cluster) -> None:
    assert set(cluster.services) > set(NODES)
    load = Load(cluster, tasks=TASKS, seed=7, pace=200, schedulers=list(RULES))
    for node in NODES:
        (container,) = cluster.containers(node)
        container.kill("SIGKILL")
        load.wait_for_more("tasks_processed", 500)
        container.start()
        cluster.wait_until_healthy()
    for run in load.complete():
        assert cluster.sql(COUNTED.format(run=run)) == once(TASKS, RULES)
