"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option("--url", envvar="HYBRID_URL", help="The gateway's address.", show_default=False),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of an embedded arena (default: .hybrid here).",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
RunArgument = Annotated[
    str | None, typer.Argument(help="A run's id; without it the newest active run.")
]
