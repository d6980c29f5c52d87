"""A supervised process and its log."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from deploy.local import processes
from deploy.local.launchers import Program
from deploy.local.processes import Child
from tests.waiting import until

# One write per line, as our services log. With PYTHONUNBUFFERED `print` makes two, and the log may
# be rotated between them.
COUNTS = """
import itertools, os, time
for number in itertools.count():
    os.write(1, f"{number}\\n".encode())
    time.sleep(0.0005)
"""


async def test_a_log_never_grows_beyond_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LOG_BYTES", 1000)
    monkeypatch.setattr(processes, "ROTATE_CHECK_SECONDS", 0.05)
    log, old = tmp_path / "counter.log", tmp_path / "counter.old.log"
    child = Child("counter", Program(sys.executable, "-c", COUNTS), {}, log)
    await child.start()
    seen: set[str] = set()
    async with asyncio.timeout(60):
        while len(seen) < 3:  # rotated twice, at least
            await asyncio.sleep(0.01)
            if old.exists():
                seen.add(old.read_text().partition("\n")[0])
    await child.stop()
    assert child.restarts == 0
    assert {path.name for path in tmp_path.iterdir()} == {log.name, old.name}
    # After a rotation it writes at the start of the file, not at its old position.
    assert "\0" not in log.read_text()
    numbers = [int(line) for line in (old.read_text() + log.read_text()).splitlines()]
    assert numbers == sorted(set(numbers))


@pytest.mark.skipif(sys.platform != "linux", reason="sessions have a niceness on Linux only")
async def test_a_process_has_its_niceness_and_so_has_its_session(tmp_path: Path) -> None:
    niceness = os.getpriority(os.PRIO_PROCESS, 0) + 1
    waiting = Program(sys.executable, "-c", "import time; time.sleep(600)")
    child = Child("sleeper", waiting, {}, tmp_path / "log", niceness=niceness)
    await child.start()
    pid = child.pid
    assert pid is not None
    session = Path(f"/proc/{pid}/autogroup")

    def lowered() -> bool:
        if session.exists() and not session.read_text().endswith(f" nice {niceness}\n"):
            return False
        return os.getpriority(os.PRIO_PROCESS, pid) == niceness

    await asyncio.to_thread(until, lowered)
    await child.stop()
