"""Where an embedded arena lives: its folder, ports and secrets.

The folder holds everything: NATS's streams, ClickHouse's tables, logs, the secrets made on first
start, and, while the arena runs, `arena.json` with the addresses, so that other commands find it.
It counts while `arena.lock` is held: an arena that was killed leaves it behind.
"""

from __future__ import annotations

import json
import random
import secrets
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from deploy.local import lock
from deploy.local.certificates import Certificates
from deploy.local.private import write_private
from deploy.nats.permissions import USERS
from shared import signing
from shared.errors import ArenaError

DEFAULT_DATA_DIR = Path(".hybrid")
CLICKHOUSE_USER = "hybrid"

LOCK = "arena.lock"
TLS_FOLDER = "tls"
ROUTES_ABOVE = 2000  # 6222 for 4222, as is usual

# Systems take the ports of outgoing connections from above these.
NEVER_GIVEN = range(20_000, 32_000)


class StartError(ArenaError):
    """The arena cannot start; says what to do about it."""


@dataclass(frozen=True, slots=True)
class Ports:
    gateway: int = 8000
    nats: int = 4222
    clickhouse: int = 8123
    more_nats: tuple[int, ...] = ()  # of the other nodes of a cluster
    routes: tuple[int, ...] = ()  # between the nodes of a cluster

    @classmethod
    def of(cls, gateway: int, nats: int, clickhouse: int, nodes: int = 1) -> Ports:
        """A cluster's nodes are at the ports that follow the first one's, as are its routes."""
        if nodes == 1:
            return cls(gateway, nats, clickhouse)
        routes = range(nats + ROUTES_ABOVE, nats + ROUTES_ABOVE + nodes)
        return cls(gateway, nats, clickhouse, tuple(range(nats + 1, nats + nodes)), tuple(routes))

    @classmethod
    def free(cls, nodes: int = 1) -> Ports:
        """Ports that nobody uses now, and that no connection will be given meanwhile."""
        candidates = iter(random.sample(NEVER_GIVEN, 100))
        found = (port for port in candidates if _can_listen(port) is None)
        chosen = cls(next(found), next(found), next(found))
        if nodes == 1:
            return chosen
        more = tuple(next(found) for _ in range(nodes - 1))
        return replace(chosen, more_nats=more, routes=tuple(next(found) for _ in range(nodes)))

    @property
    def nats_nodes(self) -> tuple[int, ...]:
        return (self.nats, *self.more_nats)

    def check(self) -> None:
        wanted = [("gateway", self.gateway), ("clickhouse", self.clickhouse)]
        wanted += [("nats", port) for port in (*self.nats_nodes, *self.routes)]
        for name, port in wanted:
            if problem := _can_listen(port):
                raise StartError(
                    f"port {port} for {name} cannot be used: {problem}; choose another "
                    f"with {_OPTIONS[name]}, or let --auto-ports find free ones"
                )


def _can_listen(port: int) -> str | None:
    """What is against it."""
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
        """Those of the folder; what is missing, in a new one or an older arena's, is made."""
        path = data_dir / "secrets.json"
        said = json.loads(path.read_text()) if path.exists() else {}
        known = said.get("nats")
        if not isinstance(known, dict):  # an older arena had one user for all
            known = {}
        made = cls(
            nats={user: known.get(user) or _password() for user in USERS},
            nats_routes=said.get("nats_routes") or _password(),
            clickhouse=said.get("clickhouse") or _password(),
            analyst=said.get("analyst") or _password(),
            models=said.get("models") or signing.new_key(),
        )
        if asdict(made) != said:
            write_private(path, json.dumps(asdict(made)))
        return made


def _password() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Arena:
    """A running arena, as other commands need to know it."""

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
        """What its servers show and its clients trust; none: everything is in plain text."""
        return Certificates.of(Path(self.data_dir) / TLS_FOLDER) if self.tls else None

    def environment(self, user: str) -> dict[str, str]:
        """The settings that a service of this arena gets."""
        servers = [f"nats://127.0.0.1:{port}" for port in self.ports.nats_nodes]
        return {
            "HYBRID_NATS_URL": ",".join(servers),
            "HYBRID_NATS_REPLICAS": str(self.nats_replicas),
            "HYBRID_NATS_USER": user,
            "HYBRID_NATS_PASSWORD": self.secrets.nats[user],
            "HYBRID_CLICKHOUSE_URL": f"{self._http}://127.0.0.1:{self.ports.clickhouse}",
            "HYBRID_CLICKHOUSE_USER": CLICKHOUSE_USER,
            "HYBRID_CLICKHOUSE_PASSWORD": self.secrets.clickhouse,
            "HYBRID_MODEL_PUBLIC_KEY": signing.public_key(self.secrets.models),
            **({"HYBRID_MODEL_KEY": self.secrets.models} if user == "trainer" else {}),
            **self._trust(),
        }

    def _trust(self) -> dict[str, str]:
        certificates = self.certificates
        if certificates is None:
            return {}
        return {
            "HYBRID_NATS_TLS_CA": str(certificates.authority),
            "HYBRID_CLICKHOUSE_TLS_CA": str(certificates.authority),
            "HYBRID_GATEWAY_TLS_CA": str(certificates.authority),
            "HYBRID_HTTP_TLS_CERT": str(certificates.certificate),
            "HYBRID_HTTP_TLS_KEY": str(certificates.key),
        }

    def save(self) -> None:
        described = {
            "pid": self.pid,
            "data_dir": self.data_dir,
            "ports": asdict(self.ports),
            "secrets": asdict(self.secrets),
            "nats_replicas": self.nats_replicas,
            "tls": self.tls,
        }
        write_private(Path(self.data_dir) / "arena.json", json.dumps(described))

    def forget(self) -> None:
        (Path(self.data_dir) / "arena.json").unlink(missing_ok=True)


def find(data_dir: Path) -> Arena | None:
    """The arena that runs in this folder, if one does."""
    try:
        said = json.loads((data_dir / "arena.json").read_text())
        ports, known = Ports(**said.pop("ports")), Secrets(**said.pop("secrets"))
        arena = Arena(ports=ports, secrets=known, **said)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return arena if lock.is_held(data_dir / LOCK) else None
