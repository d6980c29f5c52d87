"""The `hybrid` command.

A command's module is imported when the command runs, so that `hybrid --help` starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from shared.errors import ArenaError

COMMANDS = {  # with their lines in `hybrid --help`
    "up": "Start the arena: NATS, ClickHouse and every service, each as a process of its own.",
    "status": "Show the services, the race between the schedulers, and who lags behind.",
    "run": "Start, watch and control runs.",
    "model": "List, inspect, export and roll back models.",
    "rejected": "Dead letters: messages that a service could not read, kept with the reason.",
    "experiment": "Experiments: many runs, several seeds, one report with figures and intervals.",
    "advise": "Say which scheduler to use for these machines and jobs, by how much, and why.",
    "adversary": "Search small workloads on which a scheduler loses most to another.",
    "trace": "Inspect, convert and replay recorded workloads.",
    "platform": "Platforms: import, list, show and check the machines that runs are simulated on.",
    "capacity": "Find how much of something a target needs, such as GPUs.",
    "sql": "Query ClickHouse with read-only access.",
    "tail": "Print messages as they pass on the bus, until Ctrl-C.",
    "profile": "Measure this machine: matrix products, memory, the GPU if torch finds one.",
    "validate": "Run workloads for real and in simulation, and write the platform's certificate.",
}
# The modules of groups; any other command is a function in the module of its name.
GROUPS = {name: f"{name}s.commands" for name in ("run", "model", "experiment", "trace", "platform")}
GROUPS["rejected"] = "rejected"


class LazyGroup(TyperGroup):
    """Shows every command in its help, and imports the one that is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=COMMANDS[name]) for name in COMMANDS}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(str(name)), rest

    def invoke(self, ctx: Any) -> Any:
        """An error of ours is one line on stderr instead of a traceback, and ends with 1."""
        try:
            return super().invoke(ctx)
        except ArenaError as error:
            from services.cli.output import fail

            fail(str(error))


def load(name: str) -> Any:
    """The command or group with its options, as typer builds it."""
    module = import_module(f"services.cli.{GROUPS.get(name, name)}")
    parent = typer.Typer(rich_markup_mode="markdown")
    if name in GROUPS:
        parent.add_typer(module.app, name=name, help=COMMANDS[name])
    else:
        parent.command(name)(getattr(module, name))
    return typer.main.get_group(parent).commands[name]


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, rich_markup_mode="markdown")


def print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print(f"hybrid {version('hybrid-ml-scheduler')}")
        raise typer.Exit


@app.callback()
def hybrid(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=print_version, help="Print the version."),
    ] = False,
) -> None:
    """An arena for CPU/GPU schedulers: one stream of tasks, many competitors, every decision
    priced in time, energy and money."""
