"""Start the embedded ClickHouse: `python -m deploy.local.clickhouse --path DIR`."""

import argparse
import logging
import os
import socket
import sys
from pathlib import Path

from .access import ANALYST, User, Users
from .disk_space import DiskSpaceWatch
from .engine import Engine, FolderUnusable
from .server import serve

_ENVIRONMENT = """\
users, from the environment as with the official image:
  CLICKHOUSE_USER              the writer's name (default: default)
  CLICKHOUSE_PASSWORD          the writer's password (default: none)
  CLICKHOUSE_DB                a database to create at the start
  CLICKHOUSE_ANALYST_PASSWORD  set it to add the read-only user 'analyst'

example:
  python -m deploy.local.clickhouse --path .data/clickhouse
  curl 'http://127.0.0.1:8123/?query=SELECT+version()'
"""


class Misconfigured(Exception):
    """The server cannot start; the message says what to change."""


def main() -> int:
    options = _parse_arguments()
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        users = _users()
        listener = _bind(options.host, options.port)
        engine = Engine(options.path.resolve())
    except (Misconfigured, FolderUnusable) as error:
        print(f"clickhouse: {error}", file=sys.stderr)
        return 1
    database = os.environ.get("CLICKHOUSE_DB")
    if database:
        engine.create_database(database)
    DiskSpaceWatch(engine, options.path.resolve()).start()
    host, port = listener.getsockname()[:2]
    scheme = "https" if options.tls_cert else "http"
    print(f"clickhouse: {engine.version} on {scheme}://{host}:{port}", file=sys.stderr, flush=True)
    limit, tls = options.max_body_mib << 20, (options.tls_cert, options.tls_key)
    if not serve(engine, users, listener, max_body_bytes=limit, tls=tls):
        print("clickhouse: stopped with queries still running", file=sys.stderr, flush=True)
        # The engine cannot be closed under a running query, and its threads cannot be joined.
        os._exit(1)
    return 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.local.clickhouse",
        description="The real ClickHouse engine in one process, on ClickHouse's HTTP protocol.",
        epilog=_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--path", type=Path, required=True, help="folder that holds the data")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=int, default=8123, help="port, 0 for a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--max-body-mib",
        type=int,
        default=256,
        metavar="MIB",
        help="largest request body, compressed or not (default: %(default)s)",
    )
    parser.add_argument("--tls-cert", type=Path, help="certificate (PEM): serve TLS only")
    parser.add_argument("--tls-key", type=Path, help="its key (PEM)")
    options = parser.parse_args()
    if (options.tls_cert is None) != (options.tls_key is None):
        parser.error("--tls-cert and --tls-key belong together")
    return options


def _users() -> Users:
    writer = os.environ.get("CLICKHOUSE_USER") or "default"
    users = [User(writer, os.environ.get("CLICKHOUSE_PASSWORD", ""))]
    analyst_password = os.environ.get("CLICKHOUSE_ANALYST_PASSWORD")
    if analyst_password:
        if writer == ANALYST:
            raise Misconfigured(f"'{ANALYST}' is the read-only user: set another CLICKHOUSE_USER")
        users.append(User(ANALYST, analyst_password, readonly=True))
    return Users(*users)


def _bind(host: str, port: int) -> socket.socket:
    """Before the engine starts, so that a port in use is reported at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, OverflowError) as error:
        raise Misconfigured(f"cannot listen on {host}:{port} ({error}): check --host") from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        # With SO_REUSEADDR only a listening socket keeps the port; clients wait until it serves.
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        raise Misconfigured(
            f"cannot listen on {host}:{port} ({error}): "
            "stop what uses the port or give another --port"
        ) from None
    return listener


if __name__ == "__main__":
    sys.exit(main())
