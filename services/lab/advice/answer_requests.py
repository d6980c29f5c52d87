"""The lab beside an arena: answers requests for advice, one after the other.

    python -m services.lab.advice.answer_requests

Requests are folders below HYBRID_REPORTS_DIR, see shared/messages/advice.py. Each is answered by a
process of its own, so that this one stays small; one that was interrupted begins again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

LOOK_SECONDS = 1.0
STOP_SECONDS = 10.0


def main() -> None:
    folder, stopping = os.environ.get("HYBRID_REPORTS_DIR"), threading.Event()
    if not folder:
        sys.exit("set HYBRID_REPORTS_DIR to the same folder as for the gateway")
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stopping.set())
    while not stopping.wait(LOOK_SECONDS):
        for request in waiting(Path(folder)):
            answer(request.parent, stopping)
            if stopping.is_set():
                break


def waiting(folder: Path) -> list[Path]:
    """Oldest first."""
    # Imported late: an idle lab needs nothing of it.
    requests = sorted(folder.glob("*/request.json"), key=lambda path: path.stat().st_mtime)
    if not requests:
        return []
    from shared.messages.advice import read_progress

    return [path for path in requests if read_progress(path.parent).state in ("waiting", "running")]


def answer(folder: Path, stopping: threading.Event) -> None:
    process = subprocess.Popen([sys.executable, "-m", "services.lab.advice", str(folder)])
    while process.poll() is None:
        if stopping.wait(0.2):
            process.terminate()
            process.wait(STOP_SECONDS)
            return
    if process.returncode:
        report_crash(folder, process.returncode)


def report_crash(folder: Path, code: int) -> None:
    """Store the failure of a process that died before it could do so."""
    from services.lab.atomic_write import replace_text
    from shared.messages.advice import PROGRESS, AdviceProgress, read_progress

    if read_progress(folder).state in ("waiting", "running"):
        failed = AdviceProgress(state="failed", text=f"the lab's process ended with {code}")
        replace_text(folder / PROGRESS, failed.model_dump_json())


if __name__ == "__main__":
    main()
