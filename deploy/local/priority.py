"""Which process gets a core first, where all of them want one."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

# By service, or by name of a process. The simulator, NATS and the generator come first: what waits
# for them waits for one process. The executor's tasks must run as fast as the machine allows.
NICENESS = {
    "gateway": 5,
    "scheduler": 8,
    "recorder": 5,
    "clickhouse": 5,
    "trainer": 15,
    "lab": 15,
}
TRIES = 50


async def lower_priority(pid: int, niceness: int) -> None:
    """Of a process that has just been started in a session of its own.

    Linux first shares the cores among sessions, whatever the niceness of their processes: a session
    has its own. Without privileges it can be set ten times a second.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
    session = Path(f"/proc/{pid}/autogroup")
    for _ in range(TRIES):
        if not session.exists():
            return
        with suppress(OSError):
            if os.getsid(pid) == pid:
                session.write_text(str(niceness))
                return
        await asyncio.sleep(0.1)
