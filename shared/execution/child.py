"""The process of one device: `python -m shared.execution.child`, started by DeviceProcess.

It reads one line of JSON for each task, and answers with one. The first line has the settings.
numpy is imported after the process is pinned, since its threads stay where they were started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from shared.execution.process_limits import die_with, limit_memory

if TYPE_CHECKING:
    from shared.execution.energy import EnergyMeter
    from shared.execution.kernels import Inputs, Run
    from shared.execution.settings import DeviceSetting


def main() -> None:
    answers = _private_stdout()
    first = json.loads(sys.stdin.readline())
    die_with(first["parent"])
    os.sched_setaffinity(0, first["device"]["cores"])
    limits = first["limits"]
    os.nice(max(0, limits["nice"] - os.nice(0)))
    try:
        child = _make_child(first["device"], limits["memory_mb"])
    except Exception as error:
        _answer(answers, failure=f"the device cannot start: {_explain(error)}")
        return
    _answer(answers)
    for line in sys.stdin:
        _answer(answers, **child.run(**json.loads(line)))


def _make_child(fields: dict[str, Any], memory_mb: float) -> Child:
    from shared.execution.energy import meter_of
    from shared.execution.kernels import Inputs
    from shared.execution.libraries import library_of
    from shared.execution.settings import DeviceSetting

    device = DeviceSetting(**fields)
    inputs = Inputs(library_of(device), copies=device.copy)
    if device.torch_device is None:  # the drivers of GPUs reserve far more than they use
        limit_memory(memory_mb)
    return Child(device, inputs, meter_of(device))


class Child:
    def __init__(self, device: DeviceSetting, inputs: Inputs, energy: EnergyMeter) -> None:
        self._device, self._inputs, self._energy = device, inputs, energy

    def run(self, argv: list[str] | None = None, **work: Any) -> dict[str, Any]:
        """Seconds of preparation, transfer and kernel, joules, and why it failed."""
        requested_at = time.monotonic()
        started = transferred = requested_at
        failure = None
        self._energy.begin()
        try:
            transfer, kernel = self._prepare(**work)
            started = time.monotonic()
            transferred = started
            if transfer is not None:
                transfer()
                transferred = time.monotonic()
            if argv is None:
                kernel()
            else:
                failure = _run_program(argv, work)
        except MemoryError:
            failure = "out of memory"
        except Exception as error:
            failure = _explain(error)
        ended = time.monotonic()
        return {
            "preparation_s": started - requested_at,
            "transfer_s": max(transferred - started, 0.0),
            "kernel_s": ended - max(transferred, started),
            "energy_j": self._energy.end(),
            "failure": failure,
        }

    def _prepare(
        self, kind: str, size: float, memory_mb: float, intensity: float, share: float
    ) -> tuple[Run | None, Run]:
        from shared.execution.kernels import KERNELS, prepare

        scale = self._device.scale
        copied = share * memory_mb * scale if self._device.copy else 0.0
        transfer = self._inputs.transfer(copied) if copied else None
        if kind.startswith("command:"):
            return transfer, lambda: None
        if kind not in KERNELS:
            raise ValueError(f"no kernel {kind!r}; there are {', '.join(KERNELS)}")
        return transfer, prepare(kind, size * scale, intensity, share, self._inputs)


def _run_program(argv: list[str], work: dict[str, Any]) -> str | None:
    """Why it failed; the task's properties are in its environment."""
    task = {f"HYBRID_TASK_{name.upper()}": str(value) for name, value in work.items()}
    parent = os.getpid()
    ended = subprocess.run(
        argv,
        env={**os.environ, **task},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: die_with(parent),
        check=False,
    )
    if ended.returncode == 0:
        return None
    last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
    how = (
        f"killed by signal {-ended.returncode}"
        if ended.returncode < 0
        else f"exit status {ended.returncode}"
    )
    return f"{how}: {last}" if last else how


def _explain(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return text[:300] or type(error).__name__


def _private_stdout() -> TextIO:
    """The pipe to the parent; what libraries print goes to stderr instead."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _answer(answers: TextIO, **fields: Any) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
