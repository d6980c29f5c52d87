"""Write the configuration files of NATS that containers mount."""

from pathlib import Path

from deploy.nats.permissions import users_conf
from deploy.nats.server import containers

HEADER = "# Written by `python -m deploy.nats`.\n"


def files() -> dict[str, str]:
    servers = {name: HEADER + text for name, text in containers().items()}
    return {**servers, "users.conf": users_conf()}


if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text)
