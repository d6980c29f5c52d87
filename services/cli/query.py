"""`hybrid sql`: ask ClickHouse."""

from __future__ import annotations

import sys
from typing import Annotated

import httpx
import typer
from rich.table import Table

from services.cli.client import local_arena, settings
from services.cli.options import DataDir, Json
from services.cli.output import explained, fail, out
from shared.tls import client_context


def sql(
    query: Annotated[str, typer.Argument(help="A query; - reads it from standard input.")],
    format: Annotated[
        str | None,
        typer.Option("--format", help="A ClickHouse format, such as CSVWithNames or Parquet."),
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Query ClickHouse, as a reader.

    Examples: `hybrid sql "SELECT scheduler, avg(time) FROM scheduler_results FINAL GROUP BY 1"`,
    `hybrid sql "SELECT * FROM tasks" --format CSVWithNames > tasks.csv`, `hybrid sql "SHOW TABLES"`
    """
    text = sys.stdin.read() if query == "-" else query
    wanted = format or ("JSONEachRow" if json else "JSONCompact")
    with explained():
        where = settings(data_dir)
        arena = local_arena(data_dir)
    trusted = where.clickhouse_tls_ca
    user, password = where.clickhouse_user, where.clickhouse_password.get_secret_value()
    if arena is not None:
        user, password = "analyst", arena.secrets.analyst
    try:
        with httpx.stream(
            "POST",
            where.clickhouse_url,
            content=text.encode(),
            params={
                "database": where.clickhouse_database,
                "default_format": wanted,
                "readonly": "1",  # whoever the user is: a reader must not drop a table by mistake
            },
            headers={"X-ClickHouse-User": user, "X-ClickHouse-Key": password},
            timeout=300,
            verify=client_context(trusted) if trusted else True,
        ) as answer:
            if not answer.is_success:
                fail(answer.read().decode(errors="replace").strip())
            if wanted == "JSONCompact" and answer.headers.get("x-clickhouse-format") == wanted:
                answer.read()
                _print_table(answer)
                return
            for piece in answer.iter_bytes():
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except httpx.HTTPError as error:
        fail(f"ClickHouse does not answer at {where.clickhouse_url}: {type(error).__name__}")


def _print_table(answer: httpx.Response) -> None:
    if not answer.content.strip():
        return
    said = answer.json()
    table = Table(*(column["name"] for column in said["meta"]), header_style="bold")
    for row in said["data"]:
        table.add_row(*(_cell(value) for value in row))
    out.print(table)


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).replace("[", r"\[")
