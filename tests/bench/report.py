"""Prints what a bench command measured; with --write also puts it into docs/benchmarks.md.

Each command has a section of the page between `<!-- make NAME -->` and `<!-- end -->`, and nobody
edits these by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.bench import machine

PAGE = Path("docs/benchmarks.md")

Table = Sequence[Sequence[str]]  # the first row is the head


def parser(target: str, doc: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=f"make {target}", description=doc.splitlines()[0])
    made.add_argument("--write", action="store_true", help=f"update this section of {PAGE}")
    return made


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def publish(target: str, measured: Mapping[str, Any], table: Table, *, write: bool) -> None:
    measured = {"machine": machine.describe(), **measured}
    json.dump(measured, sys.stdout, indent=2)
    print()
    if write:
        text = section(target, measured, table)
        PAGE.write_text(updated(PAGE.read_text(), f"make {target}", text))
        print(f"updated the section of make {target} in {PAGE}", file=sys.stderr)


def record(figures: Mapping[str, str], measured: Mapping[str, Any]) -> None:
    """Write this version's line of the record; those of other versions stay."""
    version = metadata.version("hybrid-ml-scheduler")
    row = [version, str(datetime.now(UTC).date()), _machine(measured["machine"])]
    head = ["version", "day", "machine", *figures]
    page = PAGE.read_text()
    before = _section_of(page, "record").group(2).splitlines()[2:]
    kept = [line for line in before if not line.startswith(f"| {version} |")]
    lines = _markdown([head, [*row, *figures.values()]]).splitlines()
    PAGE.write_text(updated(page, "record", "\n".join([*lines[:2], *kept, lines[2]]) + "\n"))


def updated(page: str, name: str, text: str) -> str:
    found = _section_of(page, name)
    return page[: found.start(2)] + text + page[found.end(2) :]


def _section_of(page: str, name: str) -> re.Match[str]:
    found = re.search(rf"(<!-- {name} -->\n)(.*?)(<!-- end -->)", page, re.S)
    if found is None:
        raise SystemExit(f"{PAGE} has no section <!-- {name} --> ... <!-- end -->: add one")
    return found


def section(target: str, measured: Mapping[str, Any], table: Table) -> str:
    arguments = shlex.join(argument for argument in sys.argv[1:] if argument != "--write")
    command = f"make {target}" + (f" ARGS='{arguments}'" if arguments else "")
    where, day = _machine(measured["machine"]), datetime.now(UTC).date()
    return f"`{command}` on {day}, commit {_commit()}; {where}.\n\n{_markdown(table)}\n"


def _machine(described: Mapping[str, Any]) -> str:
    return "{cpu}, {cores} cores, {memory_gib:.0f} GiB of memory".format_map(described)


def _commit() -> str:
    head = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    changes = ["git", "diff", "--quiet", "HEAD", "--", f":!{PAGE}"]
    return f"{commit} with changes" if subprocess.run(changes).returncode else commit


def _markdown(table: Table) -> str:
    head, *rows = ("| " + " | ".join(row) + " |" for row in table)
    return "\n".join([head, "|" + "---|" * len(table[0]), *rows])
