"""OpenTelemetry: one trace from a batch of tasks to its stored results, sent by OTLP over HTTP."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.integration.arena import Arena, eventually


class Collector:
    """What a collector of traces does, as far as an exporter can tell."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        collected = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        collected.extend(scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    yield made
    made.close()


async def test_a_batch_is_one_trace_from_its_tasks_to_its_stored_results(
    arena: Arena, collector: Collector
) -> None:
    names = ("greedy", "eft")
    for name in names:
        await arena.start("scheduler", policy=name, traces="otlp")
    for service in ("simulator", "recorder", "generator"):
        await arena.start(service, traces="otlp")
    run = await arena.run(tasks=120, schedulers=names)
    await arena.completed(run)
    count = "SELECT count() AS n FROM scheduler_results FINAL"
    await eventually(lambda: arena.store.query(count)[0]["n"], equals=240)
    await arena.stop()  # sends what is left
    spans = [each for each in collector.spans if attributes(each)["hybrid.run"] == run.run]
    traces = {each.trace_id for each in spans}
    assert len(traces) == 3  # of 50, 50 and 20 tasks
    for trace in traces:
        made = {each.name: each for each in spans if each.trace_id == trace}
        assert set(made) == {
            "tasks",
            "store tasks",
            *(f"{kind} {name}" for kind in ("decisions", "results") for name in names),
            *(f"store results {name}" for name in names),
        }
        assert made["tasks"].parent_span_id == b""
        assert made["store tasks"].parent_span_id == made["tasks"].span_id
        for name in names:
            decisions, results = made[f"decisions {name}"], made[f"results {name}"]
            assert decisions.parent_span_id == made["tasks"].span_id
            assert results.parent_span_id == decisions.span_id
            stored = made[f"store results {name}"]
            assert stored.parent_span_id == results.span_id
            assert attributes(stored)["hybrid.tasks"] in (50, 20)
            assert made["tasks"].start_time_unix_nano < stored.end_time_unix_nano


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.int_value or each.value.string_value for each in span.attributes}


async def test_without_the_setting_nothing_of_it_is_there(arena: Arena) -> None:
    service = await arena.start("simulator")
    assert service.bus.tracing is None
