"""What the shell completes after Tab: runs, schedulers and learners of a running arena, and the
names that come with the program. Without an answer of an arena it prints nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from services.cli.client import connect
from shared.errors import ArenaError

# A key press must not hang on an arena that does not answer.
TIMEOUT_SECONDS = 1.0

Items = list[tuple[str, str]]  # values, each with what the shell shows beside it


def runs(ctx: typer.Context) -> Items:
    records = _get(ctx, "/api/runs") or []
    return [(run["run"], " ".join(filter(None, (run["state"], run["name"])))) for run in records]


def schedulers(ctx: typer.Context, incomplete: str) -> Items:
    """Completes the last name of a list with commas."""
    before, comma, _ = incomplete.rpartition(",")
    names = before.split(",")
    return [
        (f"{before}{comma}{report['scheduler']}", report["description"])
        for report in _deployed(ctx)
        if report["scheduler"] not in names
    ]


def learners(ctx: typer.Context) -> Items:
    from shared.domain.schedulers import LEARNERS

    own = {report["learner"]: report["description"] for report in _deployed(ctx)}
    return [(name, own.get(name, "")) for name in {**dict.fromkeys(LEARNERS), **own} if name]


def presets() -> list[str]:
    from shared.domain.spec_parts.workload_presets import PRESETS

    return list(PRESETS)


def platforms(incomplete: str) -> Items:
    from shared.platforms.platform_file import shipped

    return [(name, platform.description) for name, platform in shipped().items()]


def experiments(incomplete: str) -> Items:
    from services.lab.experiments.declaration import built_in

    return [(name, experiment.question) for name, experiment in built_in().items()]


def _deployed(ctx: typer.Context) -> list[dict[str, Any]]:
    health = _get(ctx, "/api/health") or {"services": []}
    reports = {report["scheduler"]: report for report in health["services"]}
    return [report for name, report in sorted(reports.items()) if name]


def _get(ctx: typer.Context, path: str) -> Any:
    url, folder = ctx.params.get("url"), ctx.params.get("data_dir")
    try:
        with connect(url, folder and Path(folder), timeout=TIMEOUT_SECONDS) as gateway:
            return gateway.get(path)
    except (ArenaError, OSError, ValueError):
        return None
