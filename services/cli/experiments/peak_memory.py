"""The peak memory of each process of an embedded arena."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from deploy.local.stack import Stack

SAMPLE_SECONDS = 0.5


@contextmanager
def sampling(stack: Stack, peaks: dict[str, float]) -> Iterator[None]:
    """Samples the processes in a thread; `peaks` has their peaks in MB, by name."""
    stopping, own_process = threading.Event(), psutil.Process()

    def note(name: str, process: psutil.Process) -> None:
        peaks[name] = max(peaks.get(name, 0.0), peak_mb(process))

    def sample() -> None:
        while not stopping.wait(SAMPLE_SECONDS):
            note("the experiment itself", own_process)
            for child in list(stack.children):
                with suppress(psutil.Error):
                    if child.pid is not None:
                        note(child.name, psutil.Process(child.pid))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def peak_mb(process: psutil.Process) -> float:
    """Exact on Linux, which records the peak; elsewhere the memory at this moment."""
    try:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return float(process.memory_info().rss / 1e6)
