"""`hybrid` as a program of its own, on a terminal of a given width or in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

COMMAND = (sys.executable, "-m", "services.cli.program")
ROOT = Path(__file__).parents[3]


def on_terminal(columns: int, *arguments: str) -> str:
    """What it prints on a terminal, without colours."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {name: os.environ[name] for name in os.environ if name not in ("COLUMNS", "CI")}
    program = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        stdin=its,
        stdout=its,
        stderr=subprocess.DEVNULL,
        env={**environment, "TERM": "xterm"},
    )
    os.close(its)
    printed = b""
    try:
        while chunk := os.read(ours, 65536):
            printed += chunk
    except OSError:  # what Linux says at the end
        pass
    os.close(ours)
    assert program.wait() == 0, printed
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed.decode())
    assert all(len(line) <= columns for line in text.splitlines()), text
    return text


def in_pipe(*arguments: str, columns: int = 20) -> str:
    environment = {**os.environ, "COLUMNS": str(columns)}
    command = [*COMMAND, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    ).stdout
