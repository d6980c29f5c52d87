"""The configuration of a NATS server, the same wherever it runs."""

from __future__ import annotations


def server_conf(*, name: str, listen: str, store: str, sync_interval: str, http: str = "") -> str:
    monitoring = f'# For health checks.\nhttp: "{http}"\n' if http else ""
    return f"""\
server_name: {name}
listen: "{listen}"
{monitoring}max_payload: 8MB
jetstream {{
  store_dir: "{store}"
  # What a power failure may take back; a killed server loses nothing.
  sync_interval: {sync_interval}
}}
include "users.conf"
"""


def cluster_section(*, listen: str, nodes: int) -> str:
    """Routes have a password too: whoever speaks as a server is asked for no other."""
    routes = ", ".join(f"$NATS_ROUTE_{number + 1}" for number in range(nodes))
    return f"""\
cluster {{
  name: arena
  listen: "{listen}"
  authorization {{ user: routes, password: $NATS_ROUTES_PASSWORD }}
  routes: [{routes}]
}}
"""


def containers() -> dict[str, str]:
    """Files that docker-compose.yml and deploy/compose.cluster.yml mount, by name."""
    server = server_conf(
        name="$NATS_SERVER_NAME",
        listen="0.0.0.0:4222",
        http="127.0.0.1:8222",
        # In the volume; see docker-compose.yml for why it is mounted here.
        store="/tmp/nats",
        sync_interval="$NATS_SYNC_INTERVAL",
    )
    return {
        "nats.conf": server,
        "cluster.conf": server + cluster_section(listen="0.0.0.0:6222", nodes=3),
    }
