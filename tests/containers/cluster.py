"""The arena in containers as docker-compose.yml starts it, in a compose project of its own.

Images that the engine does not have are pulled, ours is built. Docker Compose v2 and
docker-compose 1.29 both do.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
from docker.models.containers import Container
from testcontainers.compose import DockerCompose
from testcontainers.core.docker_client import DockerClient

from shared.runtime.tls import client_context
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).parents[2]
PORTS = ("CLICKHOUSE", "PROMETHEUS", "GRAFANA")
IMAGE, TAG = "hybrid-ml-scheduler", "test"
SLOW = "tests/containers/slow.yml"  # a scheduler that is slow on purpose


def build_image() -> None:
    """Build both images from the working tree."""
    for target, image in (("service", IMAGE), ("trainer", f"{IMAGE}-trainer")):
        command = ["docker", "build", "--network", "host", "--tag", f"{image}:{TAG}"]
        command += ["--target", target, "--file", "deploy/Dockerfile", "."]
        subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)


class _Compose(DockerCompose):
    """By `docker compose`, or docker-compose where that is what there is."""

    @cached_property
    def compose_command_property(self) -> list[str]:
        command = super().compose_command_property
        modern = subprocess.run([*command[:2], "version"], capture_output=True).returncode == 0
        if not modern and shutil.which("docker-compose"):
            return ["docker-compose", *command[2:]]
        return command

    def run(self, *arguments: str) -> None:
        self._run_command([*self.compose_command_property, *arguments])


class Cluster:
    """All services of docker-compose.yml, and what more files and settings add to them.

    With an authority they are expected to speak TLS.
    """

    def __init__(
        self, folder: Path, *files: str, authority: Path | None = None, **settings: str
    ) -> None:
        self.project = f"hybrid-test-{secrets.token_hex(3)}"
        self.settings = {
            "COMPOSE_PROJECT_NAME": self.project,
            "HYBRID_VERSION": TAG,
            "HYBRID_PUBLISH": f"127.0.0.1:{_free_port()}",
            **{f"HYBRID_{name}_PORT": str(_free_port()) for name in PORTS},
            **{name: secrets.token_hex(16) for name in _passwords()},
            **settings,
        }
        env_file = folder / "env"
        env_file.touch(0o600)
        env_file.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        self._compose = _Compose(
            ROOT,
            compose_file_name=["docker-compose.yml", *files],
            env_file=str(env_file),
            wait=False,
        )
        self.docker = DockerClient().client
        self._scheme = "https" if authority else "http"
        self._trust = client_context(authority) if authority else True
        gateway = f"{self._scheme}://{self.settings['HYBRID_PUBLISH']}"
        self.http = httpx.Client(base_url=gateway, timeout=60, verify=self._trust)

    def start(self) -> None:
        self._compose.start()

    def stop(self) -> None:
        """Leaves nothing behind, volumes included."""
        self.http.close()
        self._compose.stop()

    def scale(self, service: str, workers: int) -> None:
        self._compose.run("up", "--detach", "--no-recreate", "--scale", f"{service}={workers}")
        self.wait_until_healthy()

    def add(self, service: str) -> None:
        """A service of an optional profile."""
        self._compose.run("up", "--detach", "--no-recreate", service)

    def remove(self, service: str) -> None:
        self._compose.run("rm", "--stop", "--force", service)

    def containers(self, service: str = "") -> list[Container]:
        labels = [f"com.docker.compose.project={self.project}"]
        labels += [f"com.docker.compose.service={service}"] if service else []
        found: list[Container] = self.docker.containers.list(filters={"label": labels})
        return found

    @property
    def services(self) -> list[str]:
        return sorted({each.labels["com.docker.compose.service"] for each in self.containers()})

    def wait_until_healthy(self) -> None:
        """Every container by its own check, and the arena by the gateway's."""

        def healthy() -> bool:
            unhealthy = [each.name for each in self.containers() if each.health != "healthy"]
            return not unhealthy and self._arena_is_healthy()

        until(healthy, "every container healthy", every=0.5)

    def _arena_is_healthy(self) -> bool:
        try:
            return self.http.get("/api/health").status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def start_run(self, **spec: Any) -> str:
        answer = self.http.post("/api/runs", json=spec)
        assert answer.is_success, answer.text
        return str(answer.json()["run"])

    def status(self, run: str) -> dict[str, Any]:
        """Asked until the gateway answers: it may be restarting."""

        def status() -> dict[str, Any] | None:
            try:
                answer = self.http.get("/api/status", params={"run": run})
            except httpx.HTTPError:
                return None
            return dict(answer.json()) if answer.is_success else None

        return until(status, "an answer of the gateway") or {}

    def wait_for(self, run: str, condition: Any) -> dict[str, Any]:
        def met() -> dict[str, Any] | None:
            status = self.status(run)
            return status if condition(status) else None

        return until(met, f"status of run {run}", seconds=2 * PATIENCE) or {}

    def complete(self, run: str) -> dict[str, Any]:
        return self.wait_for(run, lambda status: status["state"] == "completed")

    def sql(self, query: str) -> list[dict[str, Any]]:
        answer = httpx.post(
            f"{self._scheme}://127.0.0.1:{self.settings['HYBRID_CLICKHOUSE_PORT']}",
            verify=self._trust,
            params={"default_format": "JSON", "output_format_json_quote_64bit_integers": 0},
            headers={
                "X-ClickHouse-User": "analyst",
                "X-ClickHouse-Key": self.settings["HYBRID_ANALYST_PASSWORD"],
                "X-ClickHouse-Database": "hybrid",
            },
            content=query,
            timeout=60,
        )
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]
        return found


def _passwords() -> list[str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return [line.removesuffix("=") for line in lines if line.endswith("_PASSWORD=")]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


# Nothing of the project's own .env may slip in.
for name in [name for name in os.environ if name.startswith("HYBRID_")]:
    del os.environ[name]
