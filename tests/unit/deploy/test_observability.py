"""Prometheus and Grafana: every scraped service is deployed, every shown series exported."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path

import httpx
import promql_parser as promql
import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import services.gateway.app
from shared.runtime.settings import Settings
from tests.integration.arena import MAKERS
from tests.unit.deploy.test_compose import OURS, ROOT, SERVICES

CONFIG = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
DASHBOARD = json.loads((ROOT / "deploy/grafana/dashboards/arena.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
PROVISIONING = ROOT / "deploy/grafana/provisioning"

# Labels that Prometheus adds to every series, and its own series about each target.
ADDED_LABELS = {"job", "instance", "workload"}
PROMETHEUS_SERIES: dict[str, set[str]] = {"up": set()}

EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]] + [
    rule["expr"] for group in RULES["groups"] for rule in group["rules"]
]


def registries() -> list[CollectorRegistry]:
    """The metrics of every service before its first message."""
    settings = Settings(policy="hybrid_ml", dashboard_dir=Path("none"))
    registries = [make(settings).registry for make in MAKERS.values()]
    return [*registries, services.gateway.app.make(settings)[0].registry]


SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}


@cache
def exported() -> dict[str, set[str]]:
    """The labels of every series of the services."""
    series = dict(PROMETHEUS_SERIES)
    for registry in registries():
        labels = {
            name: set(getattr(collector, "_labelnames", ()))
            for collector, names in registry._collector_to_names.items()
            for name in names
        }
        for family in registry.collect():
            for suffix in SUFFIXES.get(family.type, ("",)):
                more = {"le"} if suffix == "_bucket" else set()
                series[family.name + suffix] = labels.get(family.name, set()) | more
    return series


def selectors(node: promql.Expr) -> tuple[list[promql.VectorSelector], set[str]]:
    """The series of an expression, and the labels that it groups them by."""
    series: list[promql.VectorSelector] = []
    grouped: set[str] = set()

    def visit(each: promql.Expr) -> None:
        if isinstance(each, promql.VectorSelector):
            series.append(each)
        elif isinstance(each, promql.MatrixSelector):
            series.append(each.vector_selector)
        elif isinstance(each, promql.AggregateExpr) and each.modifier is not None:
            grouped.update(each.modifier.labels)

    promql.walk(node, visit)
    return series, grouped


def parsed(expression: str) -> promql.Expr:
    return promql.parse(expression.replace("$__rate_interval", "1m"))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_series_and_label_of_an_expression_exists(expression: str) -> None:
    series, grouped = selectors(parsed(expression))
    assert series
    for each in series:
        labels = exported().get(str(each.name))
        assert labels is not None, f"no service exports {each.name}"
        used = grouped | {matcher.name for matcher in each.matchers.matchers}
        missing = used - labels - ADDED_LABELS
        assert not missing, f"{each.name} has no label {missing}"


async def test_metrics_are_served_with_these_names() -> None:
    service = MAKERS["simulator"](Settings())
    transport = httpx.ASGITransport(service.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://simulator") as client:
        text = (await client.get("/metrics")).text
    families = {family.name: family.type for family in text_string_to_metric_families(text)}
    assert families["hybrid_results"] == "counter"
    assert families["hybrid_result_latency_seconds"] == "histogram"
    assert families["process_resident_memory_bytes"] == "gauge"


def test_every_metric_of_ours_is_on_the_dashboard() -> None:
    shown = {str(each.name) for text in EXPRESSIONS for each in selectors(parsed(text))[0]}
    for registry in registries():
        for family in registry.collect():
            if family.name.startswith("hybrid_"):
                suffixes = ("", "_total", "_bucket", "_count", "_sum")
                names = {family.name + suffix for suffix in suffixes}
                assert names & shown, f"{family.name} is not on the dashboard"


def test_every_service_is_scraped_on_its_port() -> None:
    scraped = {
        name: sd["port"]
        for job in CONFIG["scrape_configs"]
        for sd in job["dns_sd_configs"]
        for name in sd["names"]
    }
    assert scraped == {name: 8000 if name == "gateway" else 8080 for name in OURS}


def mounted(service: str, path: str) -> Path:
    """Our file that is mounted at this path of a container."""
    for volume in SERVICES[service]["volumes"]:
        source, target, *_ = volume.split(":")
        if target == path:
            return Path(ROOT / source)
    raise AssertionError(f"{service} has no {path}")


def test_the_files_are_mounted_where_the_containers_read_them() -> None:
    config = "/etc/prometheus/prometheus.yml"
    assert f"--config.file={config}" in SERVICES["prometheus"]["command"]
    assert yaml.safe_load(mounted("prometheus", config).read_text()) == CONFIG
    (rules,) = CONFIG["rule_files"]
    assert yaml.safe_load(mounted("prometheus", rules).read_text()) == RULES
    provider = mounted("grafana", "/etc/grafana/provisioning/dashboards/arena.yml")
    (options,) = (each["options"] for each in yaml.safe_load(provider.read_text())["providers"])
    assert json.loads(mounted("grafana", f"{options['path']}/arena.json").read_text()) == DASHBOARD


def test_the_dashboard_uses_the_data_source_that_is_provisioned() -> None:
    written = yaml.safe_load((PROVISIONING / "datasources/prometheus.yml").read_text())
    (source,) = written["datasources"]
    assert source["url"] == "http://prometheus:9090"
    provisioned = {"type": source["type"], "uid": source["uid"]}
    assert all(panel["datasource"] == provisioned for panel in PANELS)


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        left, top, width, height = (panel["gridPos"][key] for key in "xywh")
        cells = set(product(range(left, left + width), range(top, top + height)))
        assert left + width <= 24
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
