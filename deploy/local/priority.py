"""Which process of the embedded arena gets a core first when all of them want one."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

# By service, or by name of a process. Not listed are the generator, NATS and the simulator, which
# every scheduler waits for, and the executor, whose tasks must run as fast as the machine allows.
NICENESS = {
    "gateway": 5,
    "scheduler": 8,
    "recorder": 5,
    "clickhouse": 5,
    # A run waits for its pre-training, which a busy machine must not stretch to minutes.
    "trainer": 10,
    "lab": 15,
}
TRIES = 50


async def lower_priority(pid: int, niceness: int) -> None:
    """Lower the priority of a process that has just been started in a session of its own.

    Linux shares the cores among sessions first, and only then among the processes of a session, so
    both get the niceness. Ordinary users may set a session's ten times a second: hence the tries.
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
