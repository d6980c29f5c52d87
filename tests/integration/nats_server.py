"""A real NATS server as a test uses it: a process of its own, killed and started again at will."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from deploy.local.arena import Certificates, Ports
from deploy.local.nats import program, route_variables
from deploy.nats.permissions import USERS, password_variables, users_conf
from deploy.nats.server import TLS, cluster_section, server_conf
from tests.waiting import PATIENCE

# A user without limits beside the arena's own, whose passwords are made of their names.
USER, PASSWORD = "tester", "p@ss:word/ö"


def password_of(user: str) -> str:
    return f"{PASSWORD}-{user}"


def _with_tester(conf: str) -> str:
    head, users, tail = conf.partition("users: [\n")
    return f'{head}{users}    {{user: {USER}, password: "{PASSWORD}"}}\n{tail}'


def free_port() -> int:
    """A port that the system gives to no connection of another test while its server is down."""
    return Ports.free().nats


class NatsServer:
    def __init__(
        self,
        folder: Path,
        port: int,
        *,
        number: int = 0,
        routes: Sequence[int] = (),
        shown: Certificates | None = None,
    ) -> None:
        """With routes a node of a cluster, with certificates a server that speaks TLS."""
        self.port = port
        self._folder = folder
        self._number = number
        self._routes = routes
        self._tls: TLS | None = None
        if shown is not None:
            self._tls = TLS(str(shown.certificate), str(shown.key), str(shown.authority))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        config = self._folder / "nats.conf"
        text = server_conf(
            name=f"test-{self._number}",
            listen=f"127.0.0.1:{self.port}",
            store=str(self._folder / "store"),
            sync_interval='"10s"',
            tls=self._tls,
        )
        if self._routes:
            here = f"127.0.0.1:{self._routes[self._number]}"
            text += cluster_section(listen=here, nodes=len(self._routes))
        config.write_text(text)
        (self._folder / "users.conf").write_text(_with_tester(users_conf()))
        passwords = {user: password_of(user) for user in USERS}
        variables = password_variables(passwords) | route_variables("secret", self._routes)
        with (self._folder / "nats.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program(), "-c", str(config)], stderr=log, env={**os.environ, **variables}
            )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert self._process.poll() is None, (self._folder / "nats.log").read_text()
                time.sleep(0.02)
        raise AssertionError("NATS does not start")

    def reload(self, users: str) -> None:
        """With other users, while it runs."""
        assert self._process is not None
        (self._folder / "users.conf").write_text(_with_tester(users))
        self._process.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None


@contextmanager
def running_cluster(folder: Path) -> Iterator[list[NatsServer]]:
    ports = Ports.free(3)
    servers = []
    for number, port in enumerate(ports.nats_nodes):
        (folder / str(number)).mkdir()
        servers.append(NatsServer(folder / str(number), port, number=number, routes=ports.routes))
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            server.kill()


@contextmanager
def running(folder: Path, shown: Certificates | None = None) -> Iterator[NatsServer]:
    server = NatsServer(folder, free_port(), shown=shown)
    server.start()
    try:
        yield server
    finally:
        server.kill()
