"""Ctrl-C at any moment: never a traceback, and a run that goes on is named."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from services.cli.interrupts import INTERRUPTED
from tests.unit.cli.test_models import Gateway, gateway  # noqa: F401
from tests.waiting import PATIENCE

HYBRID = str(Path(sys.executable).parent / "hybrid")
RUN = "1117-045301-6a1f"
NOT_ROUTED = "http://240.0.0.1"


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [HYBRID, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("arguments", ["--help", f"run start --url {NOT_ROUTED}", "platform list"])
def test_ctrl_c_in_the_first_second_prints_no_traceback(arguments: str) -> None:
    moments = (0, 0.03, 0.1, 0.2, 0.3, 0.5, 1)
    began = time.monotonic()
    programs = {moment: start(*arguments.split()) for moment in moments}
    for moment, program in programs.items():
        time.sleep(max(began + moment - time.monotonic(), 0))
        program.send_signal(signal.SIGINT)
    for moment, program in programs.items():
        _, stderr = program.communicate(timeout=PATIENCE)
        assert "Traceback" not in stderr, f"after {moment} s:\n{stderr}"
        assert "Error" not in stderr.replace("ConnectError", ""), f"after {moment} s:\n{stderr}"


def test_ctrl_c_in_an_import_ends_the_process_without_a_word(tmp_path: Path) -> None:
    """Where a library turns the interrupt into an error of its own."""
    (tmp_path / "library.py").write_text(
        "import os, signal\n"
        "try: os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt: raise ImportError('half a library')\n"
    )
    program = "from services.cli import interrupts; interrupts.raise_in_commands(); import library"
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}",
    ]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")


def test_ctrl_c_while_waiting_for_a_run_says_that_it_goes_on(
    gateway: Gateway,  # noqa: F811
) -> None:
    gateway.respond("/api/runs", {"run": RUN, "state": "running"})
    gateway.respond("/api/status", {"state": "running", "tasks_processed": 3})
    program = start("run", "start", "--tasks", "10", "--wait")
    deadline = time.monotonic() + PATIENCE
    while not any(path.startswith("/api/status") for _, path, _ in gateway.requests):
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
    program.send_signal(signal.SIGINT)
    stdout, stderr = program.communicate(timeout=PATIENCE)
    assert (program.returncode, stdout) == (INTERRUPTED, "")
    assert f"run {RUN} continues" in stderr
    assert f"hybrid status {RUN} --url {gateway.url}" in stderr
    assert f"hybrid run stop {RUN} --url {gateway.url}" in stderr
    assert "Traceback" not in stderr
