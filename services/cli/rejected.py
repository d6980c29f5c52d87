"""`hybrid rejected ...`: the dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer import Argument, Option

from services.cli.client import connect
from services.cli.options import DataDir, Json, Url
from services.cli.output import ago, batch_table, err, out, print_fields, print_json
from services.cli.tables import prose, right, table
from shared.errors import SpecError
from shared.runtime.gateway_client import GatewayClient, Refused, retry_when_rate_limited

app = typer.Typer(no_args_is_help=True)

PAGE = 500

Numbers = Annotated[list[int] | None, Argument(min=1, help="Dead letters' numbers.")]
Service = Annotated[str | None, Option(help="Only those that this service rejected.")]
Subject = Annotated[str | None, Option(help="Only those from this subject; * and > are wildcards.")]
All = Annotated[bool, Option("--all", help="All dead letters.")]


@app.command("list")
def list_letters(
    service: Service = None,
    subject: Subject = None,
    limit: Annotated[int, Option(min=1, help="How many to list.")] = 20,
    before: Annotated[int | None, Option(min=1, help="Only those with a smaller number.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List dead letters, newest first.

    Examples: `hybrid rejected list`, `hybrid rejected list --subject 'decisions.*.greedy'`,
    `hybrid rejected list --service recorder --limit 100 --json`
    """
    with connect(url, data_dir) as gateway:
        letters = list(islice(_letters(gateway, before, service=service, subject=subject), limit))
    if json:
        print_json(letters)
    elif not letters:
        err.print("no dead letters" if service is subject is None else "no dead letters match")
    else:
        names = "when", "rejected by", "subject", prose("reason")
        headings = [*right("number"), *names, *right("bytes")]
        left_out_first = "bytes", "when", "rejected by", "reason"
        out.print(table(headings, map(_row, letters), left_out_first=left_out_first))


def _row(letter: Any) -> Iterator[str]:
    yield from (str(letter["sequence"]), ago(letter["at"]), escape(letter["service"]))
    yield from (escape(letter["subject"]) or "–", escape(letter["reason"]) or "–")
    yield f"{letter['size']:,}"


@app.command()
def show(
    number: Annotated[int, Argument(min=1, help="A dead letter's number.")],
    rows: Annotated[int, Option(min=0, max=100, help="Rows to show of a batch.")] = 5,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Show a dead letter: its headers, the reason, and as much of its content as is readable.

    Examples: `hybrid rejected show 17`, `hybrid rejected show 17 --rows 20 --json`
    """
    with connect(url, data_dir) as gateway:
        letter = gateway.get(f"/api/rejected/{number}", rows=rows)
    if json:
        print_json(letter)
        return
    names = "subject", "stream", "origin", "service", "reason", "size"
    fields = {name: str(letter[name]) for name in names}
    fields |= {"rejected": ago(letter["at"]), "replay": letter["replay_obstacle"] or "possible"}
    print_fields([*fields.items(), *letter["headers"].items()])
    if letter["kind"] == "batch":
        out.print(f"\nbatch of {letter['count']} rows:", style="bold")
        out.print(escape(letter["envelope"]), style="dim", soft_wrap=True)
        if letter["rows"]:
            out.print(batch_table(letter["rows"], letter["rows"][0]))
    else:
        out.print(f"\n{letter['kind']}:", style="bold")
        out.print(escape(letter["text"]), soft_wrap=True)


@app.command()
def replay(
    numbers: Numbers = None,
    service: Service = None,
    subject: Subject = None,
    everything: All = False,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Publish dead letters again, oldest first, once the service that rejected them is fixed.

    Each goes back to its subject and is then removed. It is safe to repeat this after an
    interruption. One that is rejected again becomes a new dead letter. Ends with 1 when one could
    not be published.

    Examples: `hybrid rejected replay 17`, `hybrid rejected replay --subject 'decisions.*.greedy'`
    """
    with connect(url, data_dir) as gateway:
        selected = _selected(gateway, numbers, everything, service=service, subject=subject)
        answers = [_replay(gateway, number, quiet=json) for number in selected]
    if json:
        print_json(answers)
    elif not answers:
        err.print("no dead letters to replay")
    if any("error" in answer for answer in answers):
        raise typer.Exit(1)


def _replay(gateway: GatewayClient, number: int, *, quiet: bool) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = retry_when_rate_limited(
            lambda: gateway.post(f"/api/rejected/{number}/replay")
        )
    except Refused as refused:
        answer = {"sequence": number, "error": str(refused)}
    if not quiet:
        note = escape(answer.get("error") or answer["note"])
        err.print(f"{number}: [red]{note}[/]" if "error" in answer else f"{number}: {note}")
    return answer


@app.command()
def purge(
    numbers: Numbers = None,
    service: Service = None,
    subject: Subject = None,
    everything: All = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Remove dead letters for good.

    Examples: `hybrid rejected purge 17 18`, `hybrid rejected purge --service recorder`,
    `hybrid rejected purge --all --yes`
    """
    with connect(url, data_dir) as gateway:
        selected = _selected(gateway, numbers, everything, service=service, subject=subject)
        if selected and not yes:
            letters = "dead letter" if len(selected) == 1 else "dead letters"
            typer.confirm(f"Remove {len(selected):,} {letters} for good?", abort=True, err=True)
        purged = 0
        if numbers:
            purged = sum(_purge(gateway, f"/api/rejected/{number}") for number in selected)
        elif selected:
            up_to = selected[-1]
            purged = _purge(gateway, "/api/rejected", service=service, subject=subject, up_to=up_to)
    if json:
        print_json({"purged": purged})
    else:
        err.print(f"{purged:,} removed" if purged else "no dead letters to remove")


def _purge(gateway: GatewayClient, path: str, **filters: Any) -> int:
    purged, complete = 0, False
    while not complete:
        answer = retry_when_rate_limited(lambda: gateway.delete(path, **filters))
        purged, complete = purged + answer["purged"], answer["complete"]
    return purged


def _selected(
    gateway: GatewayClient, numbers: list[int] | None, everything: bool, **filters: str | None
) -> list[int]:
    """The numbers of the selected dead letters, smallest first."""
    if bool(numbers) + any(value is not None for value in filters.values()) + everything != 1:
        raise SpecError(["select dead letters: numbers, or --service and --subject, or --all"])
    return sorted(
        set(numbers or (letter["sequence"] for letter in _letters(gateway, None, **filters)))
    )


def _letters(gateway: GatewayClient, before: int | None, **filters: str | None) -> Iterator[Any]:
    while True:
        page = gateway.get("/api/rejected", limit=PAGE, before=before, **filters)
        yield from page["letters"]
        before = page["next_before"]
        if before is None:
            return
