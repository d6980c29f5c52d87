"""How much memory an embedded arena took."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psutil

from deploy.local.stack import Stack

WATCH_SECONDS = 0.5


class PeakWatch:
    """The most memory that each process of an arena had: what the kernel noted, where it does."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._peaks: dict[str, float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> dict[str, float]:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        return dict(sorted(self._peaks.items()))

    def _watch(self) -> None:
        mine = psutil.Process()
        while not self._stopping.wait(WATCH_SECONDS):
            self._note("the experiment itself", mine)
            for child in list(self._stack.children):
                with suppress(psutil.Error):
                    if child.pid is not None:
                        self._note(child.name, psutil.Process(child.pid))

    def _note(self, name: str, process: psutil.Process) -> None:
        self._peaks[name] = max(self._peaks.get(name, 0.0), peak_mb(process))


def peak_mb(process: psutil.Process) -> float:
    """Linux keeps the high-water mark itself; elsewhere it is as good as it is looked at."""
    try:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return float(process.memory_info().rss / 1e6)
