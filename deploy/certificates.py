"""Certificates for containers: `python -m deploy.certificates FOLDER [NAME...]`.

For deploy/compose.tls.yml. Run it again to renew a certificate, then restart the containers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from deploy.local.arena import Certificates
from deploy.local.certificates import load_or_make

# The containers' names for each other; people use localhost, or names that they add.
NAMES = ("localhost", "gateway", "clickhouse", "nats", "nats-2", "nats-3")


def make(folder: Path, names: list[str]) -> Certificates:
    files = load_or_make(folder, [*NAMES, *names])
    # The containers' users do not own the key and must read it; the folder keeps others out.
    folder.chmod(0o700)
    files.key.chmod(0o644)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.certificates",
        description="Make an authority and a certificate for the arena in containers.",
    )
    parser.add_argument("folder", type=Path, help="where they are kept")
    parser.add_argument("names", nargs="*", help="more names under which the gateway is called")
    options = parser.parse_args()
    print(f"trust {make(options.folder, options.names).authority}")


if __name__ == "__main__":
    main()
