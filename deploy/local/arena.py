"""An embedded arena's folder, ports and secrets.

The folder holds everything: NATS's streams, ClickHouse's tables, logs, the secrets made on first
start, and, while the arena runs, `arena.json` with the addresses, so that other commands find it.
An arena that was killed leaves `arena.json` behind, so it counts only while `arena.lock` is held.
"""

from __future__ import annotations

import json
import random
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from secrets import token_urlsafe

from deploy.local import lock
from deploy.local.private_files import write_private
from deploy.nats.permissions import USERS
from shared.errors import ArenaError

# Every `hybrid` command imports this module, so what uses `cryptography` is imported where needed.

DEFAULT_DATA_DIR = Path(".hybrid")
CLICKHOUSE_USER = "hybrid"

LOCK = "arena.lock"
TLS_FOLDER = "tls"
ROUTE_PORT_OFFSET = 2000  # 6222 for 4222, as is usual

# Below the ports that systems give to outgoing connections.
FREE_PORT_RANGE = range(20_000, 32_000)


class StartError(ArenaError):
    """The arena cannot start; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class Ports:
    gateway: int
    nats: int
    clickhouse: int
    more_nats: tuple[int, ...] = ()  # the other nodes of a cluster
    routes: tuple[int, ...] = ()  # between the nodes of a cluster

    @classmethod
    def of(
        cls, nodes: int = 1, gateway: int = 8000, nats: int = 4222, clickhouse: int = 8123
    ) -> Ports:
        """The nodes of a cluster get consecutive ports, and so do the routes between them."""
        if nodes == 1:
            return cls(gateway, nats, clickhouse)
        routes = range(nats + ROUTE_PORT_OFFSET, nats + ROUTE_PORT_OFFSET + nodes)
        return cls(gateway, nats, clickhouse, tuple(range(nats + 1, nats + nodes)), tuple(routes))

    @classmethod
    def free(cls, nodes: int = 1, **fixed: int) -> Ports:
        """The ports that are given, and free ones for the rest."""
        candidates = random.sample(FREE_PORT_RANGE, 100)
        taken = fixed.values()
        free = (port for port in candidates if port not in taken and _listen_problem(port) is None)
        names = (name for name in _OPTIONS if name not in fixed)
        chosen = cls.of(**fixed, **{name: next(free) for name in names})
        if nodes == 1:
            return chosen
        more = tuple(next(free) for _ in range(nodes - 1))
        return replace(chosen, more_nats=more, routes=tuple(next(free) for _ in range(nodes)))

    @property
    def nats_nodes(self) -> tuple[int, ...]:
        return (self.nats, *self.more_nats)

    def check(self) -> None:
        ports = [("gateway", self.gateway), ("clickhouse", self.clickhouse)]
        ports += [("nats", port) for port in (*self.nats_nodes, *self.routes)]
        for name, port in ports:
            if problem := _listen_problem(port):
                raise StartError(
                    f"port {port} for {name} cannot be used: {problem}; choose another "
                    f"with {_OPTIONS[name]}, or let --auto-ports find free ones"
                )


def _listen_problem(port: int) -> str | None:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        return error.strerror
    return None


_OPTIONS = {"gateway": "--port", "nats": "--nats-port", "clickhouse": "--clickhouse-port"}


@dataclass(frozen=True, slots=True)
class Secrets:
    nats: dict[str, str]  # by user
    nats_routes: str  # between the nodes of a cluster
    clickhouse: str
    analyst: str
    models: str  # the trainer's key

    @classmethod
    def load_or_make(cls, data_dir: Path) -> Secrets:
        """The folder's secrets; those that a new folder or an older arena lacks are made."""
        from shared.messages import signatures

        path = data_dir / "secrets.json"
        stored = json.loads(path.read_text()) if path.exists() else {}
        nats = stored.get("nats")
        if not isinstance(nats, dict):  # an older arena had one user for all services
            nats = {}
        complete = cls(
            nats={user: nats.get(user) or _password() for user in USERS},
            nats_routes=stored.get("nats_routes") or _password(),
            clickhouse=stored.get("clickhouse") or _password(),
            analyst=stored.get("analyst") or _password(),
            models=stored.get("models") or signatures.new_key(),
        )
        if asdict(complete) != stored:
            write_private(path, json.dumps(asdict(complete)))
        return complete


def _password() -> str:
    return token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of the certificate that the servers show and of the authority that signed it."""

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, folder: Path) -> Certificates:
        return cls(folder / "ca.pem", folder / "server.pem", folder / "server.key")


@dataclass(frozen=True, slots=True)
class Arena:
    """The addresses and secrets of a running arena, which other commands read."""

    pid: int
    data_dir: str
    ports: Ports
    secrets: Secrets
    nats_replicas: int = 1
    tls: bool = False

    @property
    def url(self) -> str:
        return f"{self._http}://127.0.0.1:{self.ports.gateway}"

    @property
    def _http(self) -> str:
        return "https" if self.tls else "http"

    @property
    def certificates(self) -> Certificates | None:
        """None: everything is in plain text."""
        return Certificates.of(Path(self.data_dir) / TLS_FOLDER) if self.tls else None

    def environment(self, user: str) -> dict[str, str]:
        """The settings of a service of this arena."""
        from shared.messages import signatures

        servers = [f"nats://127.0.0.1:{port}" for port in self.ports.nats_nodes]
        return {
            "HYBRID_NATS_URL": ",".join(servers),
            "HYBRID_NATS_REPLICAS": str(self.nats_replicas),
            "HYBRID_NATS_USER": user,
            "HYBRID_NATS_PASSWORD": self.secrets.nats[user],
            "HYBRID_CLICKHOUSE_URL": f"{self._http}://127.0.0.1:{self.ports.clickhouse}",
            "HYBRID_CLICKHOUSE_USER": CLICKHOUSE_USER,
            "HYBRID_CLICKHOUSE_PASSWORD": self.secrets.clickhouse,
            "HYBRID_MODEL_PUBLIC_KEY": signatures.public_key(self.secrets.models),
            **({"HYBRID_MODEL_KEY": self.secrets.models} if user == "trainer" else {}),
            **self._tls_settings(),
        }

    def _tls_settings(self) -> dict[str, str]:
        if (files := self.certificates) is None:
            return {}
        trusting = "HYBRID_NATS_TLS_CA", "HYBRID_CLICKHOUSE_TLS_CA", "HYBRID_GATEWAY_TLS_CA"
        served = {"HYBRID_HTTP_TLS_CERT": files.certificate, "HYBRID_HTTP_TLS_KEY": files.key}
        paths = dict.fromkeys(trusting, files.authority) | served
        return {name: str(path) for name, path in paths.items()}

    def save(self) -> None:
        write_private(Path(self.data_dir) / "arena.json", json.dumps(asdict(self)))

    def remove_file(self) -> None:
        (Path(self.data_dir) / "arena.json").unlink(missing_ok=True)


def find(data_dir: Path) -> Arena | None:
    """The arena that runs in this folder, if one does."""
    try:
        stored = json.loads((data_dir / "arena.json").read_text())
        ports, secrets = Ports(**stored.pop("ports")), Secrets(**stored.pop("secrets"))
        arena = Arena(ports=ports, secrets=secrets, **stored)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return arena if lock.is_held(data_dir / LOCK) else None
