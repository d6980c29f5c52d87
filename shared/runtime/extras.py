"""Large packages that only some processes need, in extras of pyproject.toml."""

from __future__ import annotations

from importlib.util import find_spec

from shared.errors import ArenaError

# The extra that a package belongs to, and what needs it.
EXTRAS = {
    "torch": ("train", "the trainer, and exporting a network,"),
    "opentelemetry.sdk": ("tracing", "HYBRID_TRACES"),
    "chdb": ("embedded", "the embedded ClickHouse of `hybrid up`"),
}


class NotInstalled(ArenaError):
    """A package is missing; the text says how to install it."""


def require(*packages: str) -> None:
    for package in packages:
        if find_spec(package) is None:
            extra, needed_by = EXTRAS[package]
            raise NotInstalled(
                f"{needed_by} needs {package}, which is not installed: `make setup`, or "
                f"pip install 'hybrid-ml-scheduler[{extra}]'"
            )
