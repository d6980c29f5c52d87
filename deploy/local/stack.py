"""The embedded arena: NATS, ClickHouse and every service as a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import httpx

from deploy.local import certificates, lock
from deploy.local.arena import (
    CLICKHOUSE_USER,
    LOCK,
    TLS_FOLDER,
    Arena,
    Ports,
    Secrets,
    StartError,
    find,
)
from deploy.local.launchers import Fork, ForkServer, Launcher, Program
from deploy.local.nats import check_folder, check_nodes, make_nodes
from deploy.local.plugins import check_plugins
from deploy.local.priority import NICENESS
from deploy.local.processes import Child
from deploy.local.version_file import check_version
from shared.domain.schedulers import BUILT_IN, LEARNERS, check_scheduler_name
from shared.runtime.extras import require
from shared.runtime.settings import Settings
from shared.runtime.tls import client_context

START_SECONDS = 180.0

# One thread per process, since the processes run in parallel, and free memory goes back to the
# system.
PROCESS_LIMITS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes to start, and their folder and ports."""

    data_dir: Path
    ports: Ports
    schedulers: tuple[str, ...]  # policies: built-in names, module:Class or file.py
    scale: dict[str, int] = field(default_factory=dict)
    pack: bool = False  # one process for the built-in schedulers that do not learn
    tls: bool = False
    settings: dict[str, str] = field(default_factory=dict)  # HYBRID_* that override the arena's


class Stack:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._settings = Settings()
        require("chdb", "torch")
        self._plugins = [each for each in plan.schedulers if each not in BUILT_IN]
        check_plugins(self._plugins)
        self.children: list[Child] = []
        self._fork_server = ForkServer(PROCESS_LIMITS, plan.data_dir / "logs" / "fork-server.log")
        self._lock = self._lock_folder()
        try:
            self.arena = self._prepare()
        except BaseException:
            self._lock.close()
            raise

    def _lock_folder(self) -> TextIO:
        folder = self._plan.data_dir
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return lock.take(folder / LOCK)
        except lock.Held as held:
            running = find(folder)
            address = f", {running.url}" if running else ""
            raise StartError(
                f"an arena runs in {folder} already (process {held.owner}{address}); "
                "stop it, or choose another folder with --data-dir"
            ) from None

    def _prepare(self) -> Arena:
        plan = self._plan
        check_version(plan.data_dir)
        nodes = len(plan.ports.nats_nodes)
        check_nodes(nodes)
        check_folder(plan.data_dir, nodes)
        plan.ports.check()
        (plan.data_dir / "logs").mkdir(exist_ok=True)
        secrets = Secrets.load_or_make(plan.data_dir)
        # Three copies survive the loss of a node; more would only cost.
        configured = "nats_replicas" in self._settings.model_fields_set
        replicas = self._settings.nats_replicas if configured else min(nodes, 3)
        if plan.tls:
            certificates.load_or_make(plan.data_dir / TLS_FOLDER)
        folder = str(plan.data_dir.resolve())
        arena = Arena(os.getpid(), folder, plan.ports, secrets, replicas, plan.tls)
        arena.remove_file()  # of an arena that was killed
        return arena

    async def start(self) -> None:
        """Start everything and return when every service is healthy."""
        # The trainer first: its large libraries take longest to load.
        plugins = ",".join(self._plugins)
        await self._start_replicas("trainer", "trainer", {"HYBRID_PLUGINS": plugins})
        interval = self._settings.nats_sync_interval
        for node in make_nodes(self._plan.data_dir, self.arena, interval):
            await self._start_child(node.name, Program(*node.command), node.environment)
        await self._start_child(
            "clickhouse",
            Program(
                sys.executable,
                "-m",
                "deploy.local.clickhouse",
                "--path",
                str(self._plan.data_dir / "clickhouse"),
                "--port",
                str(self._plan.ports.clickhouse),
                *self._clickhouse_tls(),
            ),
            {
                "CLICKHOUSE_USER": CLICKHOUSE_USER,
                "CLICKHOUSE_PASSWORD": self.arena.secrets.clickhouse,
                "CLICKHOUSE_ANALYST_PASSWORD": self.arena.secrets.analyst,
            },
        )
        # The generator creates the streams that the others wait for.
        await self._start_replicas("generator", "generator", {})
        await self._start_service(
            "gateway", "gateway", {"HYBRID_HTTP_PORT": str(self._plan.ports.gateway)}
        )
        for service in ("recorder", "simulator", "executor"):
            await self._start_replicas(service, service, {})
        packed = self._packed()
        if packed:
            policies = {"HYBRID_POLICY": ",".join(packed)}
            await self._start_service("scheduler", "scheduler-rules", policies, len(packed))
        for policy in self._plan.schedulers:
            if policy not in packed:
                await self._start_replicas("scheduler", policy, {"HYBRID_POLICY": policy})
        await self._start_lab()
        self.arena.save()
        await self._wait_until_healthy()

    def _packed(self) -> list[str]:
        """The schedulers that share a process: not those that are scaled, that learn, or that are
        somebody's own, whose faults and delays stay theirs."""
        if not self._plan.pack:
            return []
        rules = (name for name in BUILT_IN if name not in LEARNERS)
        return [
            each for each in rules if each in self._plan.schedulers and each not in self._plan.scale
        ]

    def _clickhouse_tls(self) -> list[str]:
        files = self.arena.certificates
        return ["--tls-cert", str(files.certificate), "--tls-key", str(files.key)] if files else []

    async def _start_replicas(self, service: str, label: str, environment: dict[str, str]) -> None:
        label = policy_label(label) if service == "scheduler" else label
        for replica in range(self._plan.scale.get(label, 1)):
            name = label if service == label else f"scheduler-{label}"
            name += f"-{replica + 1}" if replica else ""
            await self._start_service(service, name, environment)

    async def _start_service(
        self, service: str, name: str, extra: dict[str, str], workers: int = 1
    ) -> None:
        settings = {**self.arena.environment(service), **self._plan.settings, **extra}
        await self._start_child(name, self._launcher(service, name), settings, service, workers)

    async def _start_lab(self) -> None:
        """Answers requests for advice, where there is a folder for them. No service: it is a client
        of the gateway, and not on the bus."""
        settings = {**self.arena.environment("gateway"), **self._plan.settings}
        if settings.get("HYBRID_REPORTS_DIR"):
            settings["HYBRID_URL"] = self.arena.url
            program = Program(sys.executable, "-m", "services.lab.advice.answer_requests")
            await self._start_child("lab", program, settings)

    def _launcher(self, service: str, name: str) -> Launcher:
        module = f"services.{service}"
        # Other systems have libraries that do not work after a fork.
        if sys.platform == "linux":
            return Fork(self._fork_server, module, f"{module} {name}")
        return Program(sys.executable, "-m", module)

    async def _start_child(
        self,
        name: str,
        launcher: Launcher,
        settings: dict[str, str],
        service: str = "",
        workers: int = 1,
    ) -> None:
        log_file = self._plan.data_dir / "logs" / f"{name}.log"
        niceness = NICENESS.get(service or name, 0)
        environment = {**PROCESS_LIMITS, **settings}
        child = Child(name, launcher, environment, log_file, service, workers, niceness)
        await child.start()
        self.children.append(child)

    async def _wait_until_healthy(self) -> None:
        expected: Counter[str] = Counter()
        for child in self.children:
            if child.service:
                expected[child.service] += child.workers
        deadline = asyncio.get_running_loop().time() + START_SECONDS
        problem = "nothing answers"
        files = self.arena.certificates
        verify = client_context(files.authority) if files else True
        async with httpx.AsyncClient(base_url=self.arena.url, verify=verify) as client:
            while asyncio.get_running_loop().time() < deadline:
                self._check_children()
                problem = await _health_problem(client, expected)
                if not problem:
                    return
                await asyncio.sleep(0.1)
        raise StartError(
            f"not healthy after {START_SECONDS:.0f} s: {problem}; "
            f"the logs are in {self._plan.data_dir / 'logs'}"
        )

    def _check_children(self) -> None:
        for child in self.children:
            if child.restarts >= 3:
                raise StartError(f"{child.name} does not start:\n{child.log_tail()}")

    async def stop(self) -> None:
        """Stop the services before NATS and ClickHouse, so that they can finish their batches."""
        self.arena.remove_file()
        services = [child for child in self.children if child.service]
        stores = [child for child in self.children if not child.service]
        await asyncio.gather(*(child.stop() for child in services))
        await self._fork_server.stop()
        await asyncio.gather(*(child.stop() for child in stores))
        self._lock.close()


async def _health_problem(client: httpx.AsyncClient, expected: Counter[str]) -> str:
    """Empty when every service is healthy."""
    try:
        response = await client.get("/api/health", timeout=5)
        health = response.json()
    except (httpx.HTTPError, ValueError) as error:
        return f"the gateway does not answer ({type(error).__name__})"
    if not isinstance(health, dict) or "services" not in health:
        return f"the gateway answers {response.status_code}: {response.text[:200]}"
    running = Counter(report["service"] for report in health["services"])
    absent = expected - running
    if absent:
        return "waiting for " + ", ".join(sorted(absent.elements()))
    if health["status"] != "ok":
        reports = [f"{r['service']}: {r['problems']}" for r in health["services"] if r["problems"]]
        return "; ".join(reports + health["missing"]) or str(health["clickhouse"]["problem"])
    return ""


def policy_label(policy: str) -> str:
    """The name of a scheduler's processes: a built-in's name, or that of the module or file."""
    module, colon, _ = policy.partition(":")
    return module.rpartition(".")[2] if colon else Path(policy).stem


def parse_scale(entries: list[str], known: set[str]) -> dict[str, int]:
    """`greedy=3` as {"greedy": 3}."""
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
