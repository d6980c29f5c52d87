"""Certificates for containers: `python -m deploy.certificates FOLDER [NAME...]`.

For deploy/compose.tls.yml. Run it again to renew what is about to end, then restart the containers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from deploy.local.certificates import Certificates

# Under which the containers call each other; people come by localhost, or names of their own.
NAMES = ("localhost", "gateway", "clickhouse", "nats", "nats-2", "nats-3")


def make(folder: Path, names: list[str]) -> Certificates:
    made = Certificates.load_or_make(folder, [*NAMES, *names])
    # The containers' users are not its owner, and are given the file alone; everybody else is kept
    # out by the folder.
    folder.chmod(0o700)
    made.key.chmod(0o644)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.certificates",
        description="Make an authority and a certificate for the arena in containers.",
    )
    parser.add_argument("folder", type=Path, help="where they are kept")
    parser.add_argument("names", nargs="*", help="more names under which the gateway is called")
    given = parser.parse_args()
    print(f"trust {make(given.folder, given.names).authority}")


if __name__ == "__main__":
    main()
