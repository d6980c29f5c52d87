"""Structured logs: one JSON object a line on stderr, or colours for a person."""

from __future__ import annotations

import logging
import sys
from io import TextIOBase
from typing import TextIO, cast

import structlog

from shared.runtime.settings import Settings

# These libraries log what they also raise.
REPEATED = ("clickhouse_connect", "urllib3")


class _Stderr(TextIOBase):
    """The current sys.stderr at each write: it may be replaced while the process runs."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def set_up(settings: Settings) -> None:
    level = getattr(logging, settings.log_level.upper())
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # One write per line, so that lines of several processes do not mix.
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _Stderr())),
        cache_logger_on_first_use=True,
    )
    # Libraries log through the standard module; only warnings are passed on.
    handler = logging.StreamHandler(_Stderr())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared)
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for library in REPEATED:
        logging.getLogger(library).setLevel(logging.ERROR)


def bind(**context: str) -> None:
    """What each line of this task, and of those that it starts, says besides its event."""
    structlog.contextvars.bind_contextvars(
        **{key: value for key, value in context.items() if value}
    )


def logger() -> structlog.types.FilteringBoundLogger:
    return structlog.get_logger()  # type: ignore[no-any-return]
