"""Checks the user's own schedulers before anything is started."""

from __future__ import annotations

import subprocess
import sys

from deploy.local.arena import StartError
from shared.domain.schedulers import BUILT_IN


def check_plugins(references: list[str]) -> None:
    """In a process of its own, as the workers will load them: the code may do anything."""
    names: dict[str, str] = {}
    for reference in references:
        checked = subprocess.run(
            [sys.executable, "-m", "services.scheduler.check_policy", reference],
            capture_output=True,
            text=True,
            start_new_session=True,  # without our Ctrl-C
        )
        if checked.returncode != 0:
            reason = checked.stderr.strip().rpartition("\n")[2]
            reason = reason or f"{reference} ended its process with {checked.returncode}"
            raise StartError(f"nothing was started: {reason}")
        name = checked.stdout.strip().rpartition("\n")[2]
        if name in BUILT_IN or name in names:
            other = names.get(name, "a built-in scheduler")
            raise StartError(
                f"{reference} is called {name!r}, as is {other}: give its class another `name`"
            )
        names[name] = reference
