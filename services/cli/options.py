"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from services.cli import shell_completion

# Where experiments are written to, and whose reports the dashboard shows.
EXPERIMENTS_DIR = Path("experiments")

Url = Annotated[str | None, Option(envvar="HYBRID_URL", help="The gateway's address.")]
DataDir = Annotated[Path | None, Option(help="Folder of an embedded arena (default: .hybrid).")]
Json = Annotated[bool, Option("--json", help="Print JSON for programs.")]
Limit = Annotated[int, Option(min=1, max=1000, help="How many to list.")]
Run = Annotated[
    str | None,
    Argument(
        help="A run's id; without it the newest active run.", autocompletion=shell_completion.runs
    ),
]
SpecFile = Annotated[Path | None, Option(help="A RunSpec, YAML or JSON.")]
Seed = Annotated[int | None, Option(help="Same spec and seed, same tasks.")]
Preset = Annotated[
    str | None,
    Option(help="Workload preset, such as hpc.", autocompletion=shell_completion.presets),
]
Cluster = Annotated[
    Path | None,
    Option(help="A file of `hybrid profile`: a machine's physics; fields of a spec override it."),
]
Platform = Annotated[
    str | None,
    Option(
        metavar="NAME|FILE",
        autocompletion=shell_completion.platforms,
        help="The machines: a platform's name or file (`hybrid platform list`); "
        "fields of a spec override it.",
    ),
]
Wait = Annotated[bool, Option("--wait", help="Wait until the run is complete.")]
