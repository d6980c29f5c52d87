"""Prometheus and Grafana beside the arena, if their images can be had."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import yaml
from docker.errors import APIError, ImageNotFound, NotFound

from tests.containers.cluster import ROOT, Cluster
from tests.waiting import until

SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
WATCHED = {
    name
    for name, service in SERVICES.items()
    if "profiles" not in service and name not in ("nats", "clickhouse")
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(tmp_path_factory.mktemp("cluster"))


@contextmanager
def added(cluster: Cluster, *services: str) -> Iterator[None]:
    for service in services:
        image = SERVICES[service]["image"]
        try:
            cluster.docker.images.get(image)
        except ImageNotFound:
            try:
                cluster.docker.images.pull(image)
            except NotFound:  # the registry answers, and has no such image
                raise
            except APIError as error:
                pytest.skip(f"no registry gives {image} to this machine: {error.explanation}")
    try:
        for service in services:
            cluster.add(service)
        cluster.wait_until_healthy()
        yield
    finally:
        for service in services:
            cluster.remove(service)


def asking(cluster: Cluster, service: str, **options: Any) -> httpx.Client:
    port = cluster.settings[f"HYBRID_{service.upper()}_PORT"]
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, **options)


def test_prometheus_sees_every_service(cluster: Cluster) -> None:
    run = cluster.start_run(pace=50, schedulers=["greedy", "oracle"])
    with added(cluster, "prometheus"), asking(cluster, "prometheus") as prometheus:

        def up() -> bool:
            found = prometheus.get("/api/v1/query", params={"query": "up == 1"}).json()
            return {row["metric"]["workload"] for row in found["data"]["result"]} == WATCHED

        until(up, every=1)
        rules = prometheus.get("/api/v1/rules").json()["data"]["groups"]
        assert all(rule["health"] != "err" for group in rules for rule in group["rules"])
        stored = {"query": 'sum(rate(hybrid_stored_rows_total{table="scheduler_results"}[1m]))'}

        def flows() -> bool:
            found = prometheus.get("/api/v1/query", params=stored).json()["data"]["result"]
            return bool(found) and float(found[0]["value"][1]) > 0

        until(flows, every=1)
    cluster.http.post("/api/simulation/stop", params={"run": run}).raise_for_status()


def test_grafana_shows_the_dashboard(cluster: Cluster) -> None:
    password = cluster.settings["HYBRID_GRAFANA_PASSWORD"]
    with (
        added(cluster, "prometheus", "grafana"),
        asking(cluster, "grafana", auth=("admin", password)) as grafana,
    ):
        (found,) = grafana.get("/api/search", params={"type": "dash-db"}).json()
        shown = grafana.get(f"/api/dashboards/uid/{found['uid']}").json()["dashboard"]
        assert len(shown["panels"]) > 5
        assert grafana.get("/api/datasources/uid/prometheus/health").json()["status"] == "OK"
