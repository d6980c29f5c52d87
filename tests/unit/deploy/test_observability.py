"""Prometheus and Grafana: what they scrape is deployed, what they show is exported."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import promql_parser as promql
import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import services.gateway.app
from shared.settings import Settings
from tests.integration.arena import MAKERS
from tests.unit.deploy.test_compose import OURS, ROOT, SERVICES

CONFIG = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
RULES = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
DASHBOARD = json.loads((ROOT / "deploy/grafana/dashboards/arena.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
PROVISIONING = ROOT / "deploy/grafana/provisioning"

# What Prometheus itself adds to every series, and its own series about each target.
ADDED = {"job", "instance", "workload"}
OF_PROMETHEUS: dict[str, set[str]] = {"up": set()}

EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]] + [
    rule["expr"] for group in RULES["groups"] for rule in group["rules"]
]


def registries() -> list[CollectorRegistry]:
    """Of every service, as it is before it has done anything."""
    settings = Settings(policy="hybrid_ml", dashboard_dir=Path("none"))
    made = [make(settings).registry for make in MAKERS.values()]
    return [*made, services.gateway.app.make(settings)[0].registry]


ENDINGS = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}


@cache
def exported() -> dict[str, set[str]]:
    """The labels of every series that the services have."""
    found = dict(OF_PROMETHEUS)
    for registry in registries():
        labels = {
            name: set(getattr(collector, "_labelnames", ()))
            for collector, names in registry._collector_to_names.items()
            for name in names
        }
        for family in registry.collect():
            for end in ENDINGS.get(family.type, ("",)):
                more = {"le"} if end == "_bucket" else set()
                found[family.name + end] = labels.get(family.name, set()) | more
    return found


def selectors(node: promql.Expr) -> tuple[list[promql.VectorSelector], set[str]]:
    """The series of an expression, and the labels that it groups them by."""
    found: list[promql.VectorSelector] = []
    grouped: set[str] = set()

    def visit(each: promql.Expr) -> None:
        if isinstance(each, promql.VectorSelector):
            found.append(each)
        elif isinstance(each, promql.MatrixSelector):
            found.append(each.vector_selector)
        elif isinstance(each, promql.AggregateExpr) and each.modifier is not None:
            grouped.update(each.modifier.labels)

    promql.walk(node, visit)
    return found, grouped


def parsed(expression: str) -> promql.Expr:
    return promql.parse(expression.replace("$__rate_interval", "1m"))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_series_and_label_that_is_asked_for_exists(expression: str) -> None:
    series, grouped = selectors(parsed(expression))
    assert series
    for each in series:
        labels = exported().get(str(each.name))
        assert labels is not None, f"no service exports {each.name}"
        asked = grouped | {matcher.name for matcher in each.matchers.matchers}
        assert asked <= labels | ADDED, f"{each.name} has no label {asked - labels - ADDED}"


@pytest.mark.parametrize(
    "wrong", ["rate(hybrid_results[1m])", "sum by (nobody) (hybrid_lag_messages)"]
)
def test_a_wrong_expression_would_be_noticed(wrong: str) -> None:
    with pytest.raises(AssertionError, match=r"no service exports|has no label"):
        test_every_series_and_label_that_is_asked_for_exists(wrong)


async def test_metrics_are_served_with_these_names() -> None:
    service = MAKERS["simulator"](Settings())
    inside = httpx.ASGITransport(service.app())
    async with httpx.AsyncClient(transport=inside, base_url="http://simulator") as client:
        families = {
            family.name: family.type
            for family in text_string_to_metric_families((await client.get("/metrics")).text)
        }
    assert families["hybrid_results"] == "counter"
    assert families["hybrid_result_latency_seconds"] == "histogram"
    assert families["process_resident_memory_bytes"] == "gauge"


def test_everything_of_ours_that_is_counted_is_shown() -> None:
    shown = {str(each.name) for text in EXPRESSIONS for each in selectors(parsed(text))[0]}
    for registry in registries():
        for family in registry.collect():
            if family.name.startswith("hybrid_"):
                names = {family.name + end for end in ("", "_total", "_bucket", "_count", "_sum")}
                assert names & shown, f"{family.name} is nowhere on the dashboard"


def test_every_service_is_scraped_on_its_port() -> None:
    scraped = {
        name: sd["port"]
        for job in CONFIG["scrape_configs"]
        for sd in job["dns_sd_configs"]
        for name in sd["names"]
    }
    assert scraped == {name: 8000 if name == "gateway" else 8080 for name in OURS}
    for job in CONFIG["scrape_configs"]:
        (named,) = job["relabel_configs"]
        assert named == {"source_labels": ["__meta_dns_name"], "target_label": "workload"}


def inside(service: str, path: str) -> Path:
    """The file of ours that a container sees there."""
    for volume in SERVICES[service]["volumes"]:
        source, target, *_ = volume.split(":")
        if target == path:
            return Path(ROOT / source)
    raise AssertionError(f"{service} has no {path}")


def test_the_files_are_where_the_containers_look_for_them() -> None:
    config = "/etc/prometheus/prometheus.yml"
    assert f"--config.file={config}" in SERVICES["prometheus"]["command"]
    assert yaml.safe_load(inside("prometheus", config).read_text()) == CONFIG
    (rules,) = CONFIG["rule_files"]
    assert yaml.safe_load(inside("prometheus", rules).read_text()) == RULES
    provider = inside("grafana", "/etc/grafana/provisioning/dashboards/arena.yml")
    (options,) = (each["options"] for each in yaml.safe_load(provider.read_text())["providers"])
    assert json.loads(inside("grafana", f"{options['path']}/arena.json").read_text()) == DASHBOARD


def test_the_dashboard_uses_the_data_source_that_is_provisioned() -> None:
    written = yaml.safe_load((PROVISIONING / "datasources/prometheus.yml").read_text())
    (source,) = written["datasources"]
    assert source["url"] == "http://prometheus:9090"
    wanted = {"type": source["type"], "uid": source["uid"]}
    assert all(panel["datasource"] == wanted for panel in PANELS)


def test_panels_have_places_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place: dict[str, Any] = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
