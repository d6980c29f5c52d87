"""`hybrid rejected ...`: the dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from services.cli.client import connect
from services.cli.options import DataDir, Json, Url
from services.cli.output import ago, err, explained, out, plain, print_json
from shared.errors import SpecError
from shared.gateway import Gateway, Refused, in_turn

app = typer.Typer(
    no_args_is_help=True,
    help="Dead letters: messages that no service could understand, kept with the reason.",
)

PAGE = 500

Number = Annotated[int, typer.Argument(min=1, help="A letter's number.")]
Numbers = Annotated[
    list[int] | None, typer.Argument(min=1, help="Letters' numbers.", show_default=False)
]
Service = Annotated[str | None, typer.Option(help="Only what this service put aside.")]
Subject = Annotated[
    str | None, typer.Option(help="Only what came on this subject; * and > stand for any.")
]
All = Annotated[bool, typer.Option("--all", help="All there are.")]


@app.command("list")
def list_letters(
    service: Service = None,
    subject: Subject = None,
    limit: Annotated[int, typer.Option(min=1)] = 20,
    before: Annotated[
        int | None, typer.Option(min=1, help="Only those with a smaller number.")
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """List dead letters, newest first.

    Examples: `hybrid rejected list`, `hybrid rejected list --subject 'decisions.*.greedy'`,
    `hybrid rejected list --service recorder --limit 100 --json`
    """
    with explained(), connect(url, data_dir) as gateway:
        letters = list(islice(_letters(gateway, service, subject, before), limit))
    if json:
        print_json(letters)
        return
    if not letters:
        err.print("no dead letters" if service is subject is None else "none that fit")
        return
    table = Table(
        Column("number", justify="right"),
        "when",
        "put aside by",
        "came on",
        "reason",
        Column("bytes", justify="right"),
    )
    for letter in letters:
        table.add_row(
            str(letter["sequence"]),
            ago(letter["at"]),
            plain(letter["service"]),
            plain(letter["subject"]) or "–",
            plain(letter["reason"]) or "–",
            f"{letter['size']:,}",
        )
    out.print(table)


@app.command()
def show(
    number: Number,
    rows: Annotated[int, typer.Option(min=0, max=100, help="Rows to show of a batch.")] = 5,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Show a dead letter: its headers, the reason, and what is in it as far as it can be read.

    Examples: `hybrid rejected show 17`, `hybrid rejected show 17 --rows 20 --json`
    """
    with explained(), connect(url, data_dir) as gateway:
        letter = gateway.get(f"/api/rejected/{number}", rows=rows)
    if json:
        print_json(letter)
        return
    table = Table("", Column(overflow="fold"), show_header=False, box=None)
    for name in ("subject", "stream", "origin", "service", "reason", "size"):
        table.add_row(name, plain(str(letter[name])))
    table.add_row("put aside", ago(letter["at"]))
    table.add_row("replay", plain(letter["hindrance"] or "possible"))
    for name, value in letter["headers"].items():
        table.add_row(plain(name), plain(value), style="dim")
    out.print(table)
    if letter["kind"] == "batch":
        _show_batch(letter)
    else:
        out.print(f"\n{letter['kind']}:", style="bold")
        out.print(plain(letter["text"]), soft_wrap=True)


def _show_batch(letter: Any) -> None:
    out.print(f"\nbatch of {letter['count']} rows:", style="bold")
    out.print(plain(letter["envelope"]), style="dim", soft_wrap=True)
    if letter["rows"]:
        table = Table(*letter["rows"][0], box=None, header_style="dim")
        for row in letter["rows"]:
            table.add_row(*(plain(_cell(value)) for value in row.values()))
        out.print(table)


def _cell(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


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
    """Send dead letters again, oldest first, once what could not read them has been mended.

    Each goes back to its subject and is then removed. It is safe to repeat this after an
    interruption. One that is still not understood becomes a new letter. Ends with 1 when one could
    not be sent.

    Examples: `hybrid rejected replay 17`, `hybrid rejected replay --subject 'decisions.*.greedy'`
    """
    with explained(), connect(url, data_dir) as gateway:
        chosen = _chosen(gateway, numbers, service, subject, everything)
        answers = [_replay(gateway, number, quiet=json) for number in chosen]
    if json:
        print_json(answers)
    elif not answers:
        err.print("no dead letters to replay")
    if any("error" in answer for answer in answers):
        raise typer.Exit(1)


def _replay(gateway: Gateway, number: int, *, quiet: bool) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = in_turn(lambda: gateway.post(f"/api/rejected/{number}/replay"))
    except Refused as refused:
        answer = {"sequence": number, "error": str(refused)}
    if not quiet:
        said = plain(answer.get("error") or answer["note"])
        err.print(f"{number}: [red]{said}[/]" if "error" in answer else f"{number}: {said}")
    return answer


@app.command()
def purge(
    numbers: Numbers = None,
    service: Service = None,
    subject: Subject = None,
    everything: All = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Remove dead letters for good.

    Examples: `hybrid rejected purge 17 18`, `hybrid rejected purge --service recorder`,
    `hybrid rejected purge --all --yes`
    """
    with explained(), connect(url, data_dir) as gateway:
        chosen = _chosen(gateway, numbers, service, subject, everything)
        if chosen and not yes:
            letters = "letter" if len(chosen) == 1 else "letters"
            question = f"Remove {len(chosen):,} dead {letters} for good?"
            typer.confirm(question, abort=True, err=True)
        purged = 0
        if numbers:
            purged = sum(_purge_one(gateway, number) for number in chosen)
        elif chosen:
            purged = _purge(gateway, service, subject, up_to=chosen[-1])
    if json:
        print_json({"purged": purged})
    else:
        err.print(f"{purged:,} removed" if purged else "no dead letters to remove")


def _purge_one(gateway: Gateway, number: int) -> int:
    return int(in_turn(lambda: gateway.delete(f"/api/rejected/{number}"))["purged"])


def _purge(gateway: Gateway, service: str | None, subject: str | None, up_to: int) -> int:
    purged, complete = 0, False
    while not complete:
        answer = in_turn(
            lambda: gateway.delete("/api/rejected", service=service, subject=subject, up_to=up_to)
        )
        purged, complete = purged + answer["purged"], answer["complete"]
    return purged


def _chosen(
    gateway: Gateway,
    numbers: list[int] | None,
    service: str | None,
    subject: str | None,
    everything: bool,
) -> list[int]:
    """The numbers that are meant, smallest first."""
    filtered = service is not None or subject is not None
    if bool(numbers) + filtered + everything != 1:
        raise SpecError(["say which: numbers, or --service and --subject, or --all"])
    if numbers:
        return sorted(set(numbers))
    found = _letters(gateway, service, subject)
    return sorted(letter["sequence"] for letter in found)


def _letters(
    gateway: Gateway, service: str | None, subject: str | None, before: int | None = None
) -> Iterator[Any]:
    while True:
        page = gateway.get(
            "/api/rejected", service=service, subject=subject, limit=PAGE, before=before
        )
        yield from page["letters"]
        before = page["next_before"]
        if before is None:
            return
