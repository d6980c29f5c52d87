"""Checks the user's own schedulers before anything is started."""

from __future__ import annotations

import subprocess
import sys

from deploy.local.arena import StartError
from shared.domain.schedulers import BUILT_IN
from shared.runtime.plugins import POLICY_GROUP, entry_points


class PolicyRefused(Exception):
    """A policy cannot be loaded."""


def installed_policies() -> tuple[list[str], list[str]]:
    """The names of those that installed packages offer, and why others are left out: another's
    package must not keep the arena from starting."""
    usable, problems = [], []
    for name in sorted(entry_points(POLICY_GROUP)):
        try:
            if name in BUILT_IN:
                raise PolicyRefused(f"{name} is the name of a built-in scheduler")
            if (own := _name_of(name)) != name:
                raise PolicyRefused(f"its class is called {own!r}, and its entry point {name!r}")
            usable.append(name)
        except PolicyRefused as error:
            problems.append(f"the installed policy {name} is left out: {error}")
    return usable, problems


def check_plugins(references: list[str]) -> None:
    names: dict[str, str] = {}
    for reference in references:
        try:
            name = _name_of(reference)
        except PolicyRefused as error:
            raise StartError(f"nothing was started: {error}") from None
        if name in BUILT_IN or name in names:
            other = names.get(name, "a built-in scheduler")
            raise StartError(
                f"{reference} is called {name!r}, as is {other}: give its class another `name`"
            )
        names[name] = reference


def _name_of(reference: str) -> str:
    """In a process of its own, as the workers will load it: the code may do anything."""
    checked = subprocess.run(
        [sys.executable, "-m", "services.scheduler.check_policy", reference],
        capture_output=True,
        text=True,
        start_new_session=True,  # without our Ctrl-C
    )
    if checked.returncode != 0:
        reason = checked.stderr.strip().rpartition("\n")[2]
        reason = reason or f"{reference} ended its process with {checked.returncode}"
        raise PolicyRefused(reason)
    return checked.stdout.strip().rpartition("\n")[2]
