"""`hybrid sql`: query ClickHouse."""

from __future__ import annotations

import sys
from typing import Annotated

import httpx
from typer import Argument, Option

from services.cli.client import local_arena
from services.cli.options import DataDir, Json
from services.cli.output import cell, fail, out
from services.cli.settings import settings
from services.cli.tables import table
from shared.runtime.tls import client_context


def sql(
    query: Annotated[str, Argument(help="A query; - reads it from standard input.")],
    format: Annotated[str | None, Option(help="A ClickHouse format, such as CSVWithNames.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Query ClickHouse with read-only access.

    Examples: `hybrid sql "SELECT scheduler, avg(time) FROM scheduler_results FINAL GROUP BY 1"`,
    `hybrid sql "SELECT * FROM tasks" --format CSVWithNames > tasks.csv`, `hybrid sql "SHOW TABLES"`
    """
    text = sys.stdin.read() if query == "-" else query
    output_format = format or ("JSONEachRow" if json else "JSONCompact")
    target = settings(data_dir)
    arena = local_arena(data_dir)
    user, password = target.clickhouse_user, target.clickhouse_password.get_secret_value()
    if arena is not None:
        user, password = "analyst", arena.secrets.analyst
    try:
        with httpx.stream(
            "POST",
            target.clickhouse_url,
            content=text.encode(),
            params={
                "database": target.clickhouse_database,
                "default_format": output_format,
                "readonly": "1",  # for any user: a query must not drop a table by mistake
            },
            headers={"X-ClickHouse-User": user, "X-ClickHouse-Key": password},
            timeout=300,
            verify=client_context(target.clickhouse_tls_ca) if target.clickhouse_tls_ca else True,
        ) as response:
            if not response.is_success:
                fail(response.read().decode(errors="replace").strip())
            served = response.headers.get("x-clickhouse-format")
            if output_format == served == "JSONCompact":
                if response.read().strip():
                    result = response.json()
                    headings = [column["name"] for column in result["meta"]]
                    rows = ([cell(value, 6) for value in row] for row in result["data"])
                    out.print(table(headings, rows))
                return
            for chunk in response.iter_bytes():
                sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    except httpx.HTTPError as error:
        fail(f"ClickHouse does not answer at {target.clickhouse_url}: {type(error).__name__}")
