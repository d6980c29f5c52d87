"""`make bench-websocket`: what many watchers of one run cost, as one JSON object on stdout.

Every client reads all it is sent. Bytes are those of the messages, before compression; the CPU
share is of one core, of the gateway alone, beside the same run with nobody watching.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from contextlib import AsyncExitStack
from typing import Any

import psutil
import websockets

from shared.domain.schedulers import BUILT_IN
from tests.bench import report
from tests.bench.processes import running_arena
from tests.e2e.arena import ArenaProcess

WARM_UP_SECONDS = 3.0


def main() -> None:
    parser = report.parser("bench-websocket", __doc__ or "")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20, help="how long is measured")
    parser.add_argument("--pace", type=float, default=100, help="tasks per second of the run")
    given = parser.parse_args()
    with running_arena("--idle") as arena:
        measured = measure(arena, given.clients, given.seconds, given.pace)
    report.publish("bench-websocket", {"websocket": measured}, table(measured), write=given.write)


def table(found: dict[str, Any]) -> report.Table:
    return [
        (f"{found['clients']} viewers of a run at {found['tasks_per_s']:g} tasks/s", ""),
        ("updates for each viewer", f"{found['updates_per_client_per_s']:.1f} a second"),
        ("a message, on average", f"{found['mean_message_bytes'] / 1e3:.1f} kB"),
        ("the largest message", f"{found['largest_message_bytes'] / 1e3:.1f} kB"),
        ("viewers that were disconnected", str(found["clients_dropped"])),
        ("CPU of the gateway", f"{found['gateway_cpu_share']:.0%} of a core"),
        ("CPU of the gateway without viewers", f"{found['gateway_cpu_share_unwatched']:.0%}"),
    ]


def measure(arena: ArenaProcess, clients: int, seconds: float, pace: float) -> dict[str, Any]:
    (gateway,) = arena.processes("services.gateway")
    run = arena.start_run(pace=pace, seed=1, schedulers=BUILT_IN)
    arena.wait_for(run, lambda status: status["tasks_processed"] > 0)
    alone = cpu_share(gateway, lambda: time.sleep(5))
    address = f"{arena.announced['url'].replace('http', 'ws')}/ws?run={run}"
    return {
        "clients": clients,
        "seconds": seconds,
        "tasks_per_s": pace,
        **asyncio.run(watch(address, clients, seconds, gateway)),
        "gateway_cpu_share_unwatched": round(alone, 3),
    }


def cpu_share(process: psutil.Process, wait: Any) -> float:
    before, began = _spent(process), time.monotonic()
    wait()
    return (_spent(process) - before) / (time.monotonic() - began)


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def watch(
    address: str, clients: int, seconds: float, gateway: psutil.Process
) -> dict[str, Any]:
    sizes: list[list[int]] = [[] for _ in range(clients)]
    updates: set[int] = set()
    counting = asyncio.Event()

    async def read(connection: Any, seen: list[int]) -> None:
        async for text in connection:
            if counting.is_set():
                seen.append(len(text.encode()))
                if seen is sizes[0]:
                    updates.add(json.loads(text).get("sequence", -1))

    async with AsyncExitStack() as stack:
        readers = []
        for seen in sizes:
            connection = await stack.enter_async_context(websockets.connect(address))
            readers.append(asyncio.create_task(read(connection, seen)))
        await asyncio.sleep(WARM_UP_SECONDS)
        before, began = _spent(gateway), time.monotonic()
        counting.set()
        await asyncio.sleep(seconds)
        counting.clear()
        passed = time.monotonic() - began
        used = (_spent(gateway) - before) / passed
        dropped = sum(reader.done() for reader in readers)
        for reader in readers:
            reader.cancel()
    every = [size for seen in sizes for size in seen]
    return {
        "messages_per_s": round(len(every) / passed, 1),
        "updates_per_client_per_s": round(len(updates - {-1}) / passed, 2),
        "fewest_messages_of_a_client": min(map(len, sizes)),
        "most_messages_of_a_client": max(map(len, sizes)),
        "largest_message_bytes": max(every),
        "mean_message_bytes": round(statistics.mean(every)),
        "clients_dropped": dropped,
        "gateway_cpu_share": round(used, 3),
    }


if __name__ == "__main__":
    main()
