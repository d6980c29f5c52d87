"""How long a batch of tasks takes at a steady pace, by stage and by scheduler, and what the machine
did while the slowest ones were under way."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import nats
import psutil
from nats.aio.client import Client
from nats.aio.msg import Msg

from deploy.local.arena import find
from shared.messages import batches
from tests.bench.processes import processes
from tests.e2e.arena import ArenaProcess

# Until modules are imported, caches filled and connections open.
WARM_UP_SECONDS = 10.0
# How often it is noted which processes have worked.
SAMPLE_SECONDS = 0.02
SLOWEST_SHOWN = 10


@dataclass(slots=True)
class Watched:
    """When each message of a run was seen on the bus, by scheduler and batch; wall clock."""

    published: dict[tuple[str, int], float] = field(default_factory=dict)
    decided: dict[tuple[str, int], float] = field(default_factory=dict)
    resulted: dict[tuple[str, int], float] = field(default_factory=dict)
    models: list[tuple[float, str]] = field(default_factory=list)
    busy: list[tuple[float, dict[str, float]]] = field(default_factory=list)


async def measure_latency(
    arena: ArenaProcess, pace: float, schedulers: Sequence[str], seconds: float, *, warm_up: float
) -> dict[str, Any]:
    """From tasks on the bus to their results there; without warm-up the run's start counts."""
    # Blocking calls before the run and after it: in between they would delay what is watched.
    named, before = processes(arena), _stored_seconds(arena)
    client = await _connect(arena)
    run = arena.start_run(pace=pace, seed=2, schedulers=schedulers)
    watched = Watched()
    await _subscribe(client, run, watched)
    await asyncio.to_thread(arena.wait_for, run, lambda status: status["tasks_sent"] > 0)
    sampling = asyncio.create_task(_sample(named, watched))
    began = time.time() + warm_up if warm_up else 0.0
    await asyncio.sleep(warm_up + seconds)
    sampling.cancel()
    await client.close()
    arena.http.post("/api/simulation/stop", params={"run": run})
    stored = _mean_since(before, _stored_seconds(arena))
    return {"tasks_per_s": pace, **summary(watched, began), "stored_mean_ms": stored}


async def _connect(arena: ArenaProcess) -> Client:
    local = find(arena.folder)
    assert local is not None
    return await nats.connect(
        f"nats://127.0.0.1:{local.ports.nats}", user="admin", password=local.secrets.nats["admin"]
    )


async def _subscribe(client: Client, run: str, watched: Watched) -> None:
    async def on_decisions(message: Msg) -> None:
        now, envelope = time.time(), batches.peek(message.data, message.subject).envelope
        key = (envelope.scheduler, envelope.batch)
        watched.published[key] = envelope.published_at
        watched.decided[key] = now

    async def on_results(message: Msg) -> None:
        now, envelope = time.time(), batches.peek(message.data, message.subject).envelope
        watched.resulted[envelope.scheduler, envelope.batch] = now

    async def on_model(message: Msg) -> None:
        watched.models.append((time.time(), message.subject.rpartition(".")[2]))

    await client.subscribe(f"decisions.{run}.*", cb=on_decisions)
    await client.subscribe(f"results.{run}.*", cb=on_results)
    await client.subscribe(f"models.{run}.*", cb=on_model)
    await client.flush()


async def _sample(named: dict[str, psutil.Process], watched: Watched) -> None:
    """CPU seconds that each process has taken since the last sample."""
    last = {name: _cpu(process) for name, process in named.items()}
    while True:
        await asyncio.sleep(SAMPLE_SECONDS)
        now = {name: _cpu(process) for name, process in named.items()}
        spent = {name: used - last[name] for name, used in now.items() if used > last[name]}
        watched.busy.append((time.time(), spent))
        last = now


def _cpu(process: psutil.Process) -> float:
    """In nanoseconds; cpu_times() counts in ticks of 10 ms."""
    try:
        with open(f"/proc/{process.pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9
    except OSError:
        return 0.0


def _stored_seconds(arena: ArenaProcess) -> tuple[float, float]:
    """Sum and count of the recorder's measurements, from task on the bus to result in the store."""
    health = arena.http.get("/api/health").json()
    port = next(each["http_port"] for each in health["services"] if each["service"] == "recorder")
    text = httpx.get(f"http://127.0.0.1:{port}/metrics/").text
    found = {
        line.split()[0]: float(line.split()[1])
        for line in text.splitlines()
        if line.startswith("hybrid_stored_latency_seconds_")
    }
    name = "hybrid_stored_latency_seconds_"
    return found.get(f"{name}sum", 0.0), found.get(f"{name}count", 0.0)


def _mean_since(before: tuple[float, float], after: tuple[float, float]) -> float | None:
    count = after[1] - before[1]
    return round((after[0] - before[0]) / count * 1000, 1) if count else None


def summary(watched: Watched, began: float) -> dict[str, Any]:
    keys = [
        key
        for key, at in watched.published.items()
        if at >= began and key in watched.decided and key in watched.resulted
    ]
    total = {key: watched.resulted[key] - watched.published[key] for key in keys}
    deciding = {key: watched.decided[key] - watched.published[key] for key in keys}
    simulating = {key: watched.resulted[key] - watched.decided[key] for key in keys}
    by_scheduler: dict[str, list[float]] = defaultdict(list)
    for (scheduler, _), delay in total.items():
        by_scheduler[scheduler].append(delay)
    return {
        "messages": len(keys),
        **quantiles(total.values()),
        "decided": quantiles(deciding.values()),
        "simulated": quantiles(simulating.values()),
        "by_scheduler_p99_ms": {
            name: quantiles(delays)["p99_ms"] for name, delays in sorted(by_scheduler.items())
        },
        "slowest": slowest(watched, total, deciding),
    }


def quantiles(delays: Any) -> dict[str, float]:
    ranked = statistics.quantiles([delay * 1000 for delay in delays], n=100, method="inclusive")
    return {
        "p50_ms": round(ranked[49], 1),
        "p95_ms": round(ranked[94], 1),
        "p99_ms": round(ranked[98], 1),
        "max_ms": round(max(delays) * 1000, 1),
    }


def slowest(
    watched: Watched, total: dict[tuple[str, int], float], deciding: dict[tuple[str, int], float]
) -> list[dict[str, Any]]:
    """The slowest one per cent, a line for each batch: what had the cores meanwhile."""
    most = sorted(total, key=lambda key: -total[key])[: max(len(total) // 100, 1)]
    shown: dict[int, dict[str, Any]] = {}
    for scheduler, batch in most:
        if batch in shown:
            shown[batch]["schedulers"] += 1
            continue
        key = (scheduler, batch)
        begin, end = watched.published[key], watched.resulted[key]
        spent: dict[str, float] = defaultdict(float)
        for at, busy in watched.busy:
            if begin <= at <= end + SAMPLE_SECONDS:
                for name, seconds in busy.items():
                    spent[name] += seconds * 1000
        leading = sorted(spent.items(), key=lambda item: -item[1])[:5]
        shown[batch] = {
            "batch": batch,
            "schedulers": 1,
            "slowest": scheduler,
            "ms": round(total[key] * 1000, 1),
            "decided_ms": round(deciding[key] * 1000, 1),
            "cpu_ms": {name: round(used, 1) for name, used in leading},
            "models": [name for at, name in watched.models if begin <= at <= end],
        }
    return list(shown.values())[:SLOWEST_SHOWN]
