"""Ctrl-C at any moment of a command: an exit code, never a traceback."""

from __future__ import annotations

import os
import signal
from types import FrameType

# The exit code of a command that Ctrl-C ended.
INTERRUPTED = 130

SHOW_CURSOR = b"\x1b[?25h"
IMPORTING = "<frozen importlib._bootstrap>"


def end_at_once() -> None:
    """From now on Ctrl-C ends the process without any output."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_in_commands() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt. During an import it ends the process at once: an
    interrupted import may raise anything, such as an ImportError of numpy."""
    signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename == IMPORTING:
            if os.isatty(2):
                os.write(2, SHOW_CURSOR)  # a progress bar hides it
            end_at_once()
            signal.raise_signal(number)
        frame = frame.f_back
    raise KeyboardInterrupt
