"""The configuration of a NATS server: embedded, in containers, on Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True, slots=True)
class TLS:
    """Paths of the server's certificate and key, and of the authority that it trusts."""

    certificate: str
    key: str
    authority: str

    def section(self, *rules: str) -> str:
        files = {"cert_file": self.certificate, "key_file": self.key, "ca_file": self.authority}
        lines = [f'{name}: "{path}"' for name, path in files.items()]
        return "tls {\n" + "".join(f"  {line}\n" for line in [*lines, *rules]) + "}\n"


def server_conf(
    *,
    name: str,
    listen: str,
    store: str,
    sync_interval: str,
    http: str = "",
    tls: TLS | None = None,
) -> str:
    monitoring = f'# For health checks.\nhttp: "{http}"\n' if http else ""
    # Before NATS's plain-text greeting, which could be tampered with.
    secured = tls.section("handshake_first: true") if tls else ""
    return f"""\
server_name: {name}
listen: "{listen}"
{monitoring}max_payload: 8MB
jetstream {{
  store_dir: "{store}"
  # A power failure may lose this much; a killed server loses nothing.
  sync_interval: {sync_interval}
}}
include "users.conf"
{secured}"""


def cluster_section(*, listen: str, nodes: int, tls: TLS | None = None) -> str:
    """Routes have a password: a server needs no user's password."""
    routes = ", ".join(f"$NATS_ROUTE_{number + 1}" for number in range(nodes))
    secured = tls.section("verify: true") if tls else ""
    return f"""\
cluster {{
  name: arena
  listen: "{listen}"
  authorization {{ user: routes, password: $NATS_ROUTES_PASSWORD }}
  routes: [{routes}]
{secured}}}
"""


def containers() -> dict[str, str]:
    """Files that docker-compose.yml, deploy/compose.cluster.yml and compose.tls.yml mount."""
    server = partial(
        server_conf,
        name="$NATS_SERVER_NAME",
        listen="0.0.0.0:4222",
        http="127.0.0.1:8222",
        # In the volume; see docker-compose.yml for why it is mounted here.
        store="/tmp/nats",
        sync_interval="$NATS_SYNC_INTERVAL",
    )
    files = TLS("/tls/server.pem", "/tls/server.key", "/tls/ca.pem")
    return {
        "nats.conf": server(),
        "nats.tls.conf": server(tls=files),
        "cluster.conf": server() + cluster_section(listen="0.0.0.0:6222", nodes=3),
    }
