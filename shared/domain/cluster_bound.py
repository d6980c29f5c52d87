"""The cluster bound: a floor under the makespan of every scheduler.

The Oracle is the floor of execution time per task, but it knows nothing of queues. The floor of
the makespan comes from a relaxation: tasks may be cut freely over all GPUs and all CPUs, nothing
waits, nothing depends. With shares y on the GPUs, m GPUs and k CPUs it is the linear program

    least C  with  sum y g <= m C,   sum (1 - y) c <= k C,   0 <= y <= 1

where g and c are the whole task's seconds on a GPU and on a CPU. One constraint couples the tasks,
so the best y fills the GPUs in falling order of c/g and cuts at most one task: a sort, no solver.

The memory policies change what a share may cost (see `physics.price`):

- `cpu`: a share that does not fit runs on the CPU, so at most gpu_memory/M of a task is on a GPU.
- `page`: what does not fit pays its transfer again. That is a second piece of the same task with
  a worse ratio; it comes later in the order by itself.
- `fail`: a share that does not fit ends the task at once, at no cost. A scheduler that lets a task
  fail has less work than one that runs it, so a task that *may* fail (M above the GPU's memory)
  counts as 0. If it is known which tasks failed, only those count as 0, the rest are bounded as
  under `cpu`, and the floor is tighter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared.domain.physics import Bools, Floats, cpu_seconds, fastest_share, gpu_seconds, price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Tasks

# Each start point of the arrival bound leaves this share of the tasks of the one before.
_THINNING = 2**-0.5


def cluster_bound(tasks: Tasks, spec: RunSpec, failed: Bools | None = None) -> float:
    """No schedule of these tasks is shorter, from its first start to its last finish (seconds).

    Knows neither arrivals nor dependencies. `failed` says which tasks a scheduler let fail; when
    it is left out, every task that could fail under the policy `fail` counts nothing.
    """
    return _relaxed(_pieces(tasks, spec, _dropped(tasks, spec, failed)), spec)


def arrival_bound(tasks: Tasks, spec: RunSpec, failed: Bools | None = None) -> float:
    """No schedule finishes these tasks earlier: seconds from *simulated time 0*, not from the
    first arrival. Subtract the first arrival to hold it against a makespan that starts there.

    From any moment t on, all that arrives at t or later is still to be done: the finish is no
    earlier than t plus the cluster bound of those tasks. Tried at about forty moments, from the
    first arrival to the last with ever fewer tasks left; and each task on its own cannot end
    before its arrival plus its fastest execution.
    """
    if len(tasks) == 0:
        return 0.0
    dropped = _dropped(tasks, spec, failed)
    arrivals = np.sort(tasks.arrival_time)
    pieces = _pieces(tasks, spec, dropped)
    best = _last_alone(tasks, spec, dropped)
    left = len(tasks)
    while left > 0:
        start = float(arrivals[len(tasks) - left])
        pieces = pieces.arriving_from(start)
        best = max(best, start + _relaxed(pieces, spec))
        left = int(left * _THINNING)
    return best


@dataclass(frozen=True, slots=True)
class _Pieces:
    """What may go to a GPU, best ratio first, and what must stay on a CPU."""

    on_gpu: Floats  # seconds
    on_cpu: Floats
    arrival: Floats
    stays: Floats  # seconds on a CPU, in task order
    stays_arrival: Floats

    def arriving_from(self, start: float) -> _Pieces:
        movable, fixed = self.arrival >= start, self.stays_arrival >= start
        return _Pieces(
            self.on_gpu[movable],
            self.on_cpu[movable],
            self.arrival[movable],
            self.stays[fixed],
            self.stays_arrival[fixed],
        )


def _dropped(tasks: Tasks, spec: RunSpec, failed: Bools | None) -> Bools:
    if spec.physics.memory_policy != "fail":
        return np.zeros(len(tasks), dtype=np.bool_)
    return tasks.memory_required > spec.cluster.gpu_memory_mb if failed is None else failed


def _pieces(tasks: Tasks, spec: RunSpec, dropped: Bools) -> _Pieces:
    capacity = spec.cluster.gpu_memory_mb
    runs = np.where(dropped, 0.0, 1.0)
    cpu, gpu = cpu_seconds(tasks, spec) * runs, gpu_seconds(tasks, spec) * runs
    fits = capacity / np.maximum(tasks.memory_required, capacity)
    over = np.flatnonzero((fits < 1.0) & ~dropped)
    on_cpu, on_gpu, arrival = cpu * fits, gpu * fits, tasks.arrival_time
    stays, stays_arrival = np.zeros(0), np.zeros(0)
    rest = 1.0 - fits[over]
    if spec.physics.memory_policy == "page":
        again = tasks.memory_required[over] / spec.physics.bandwidth_mb_s
        on_cpu = np.concatenate((on_cpu, cpu[over] * rest))
        on_gpu = np.concatenate((on_gpu, (gpu[over] + again) * rest))
        arrival = np.concatenate((arrival, arrival[over]))
    else:
        stays, stays_arrival = cpu[over] * rest, arrival[over]
    # A piece that costs a CPU nothing (dropped, or too small for a float) is never worth moving.
    cost = np.divide(on_gpu, on_cpu, out=np.full(len(on_cpu), np.inf), where=on_cpu > 0)
    order = np.argsort(cost, kind="stable")
    return _Pieces(on_gpu[order], on_cpu[order], arrival[order], stays, stays_arrival)


def _relaxed(pieces: _Pieces, spec: RunSpec) -> float:
    gpus, cpus = spec.cluster.gpus, spec.cluster.cpus
    # After the first j pieces went to the GPUs: seconds on the GPUs, seconds left on the CPUs.
    given = np.concatenate(([0.0], np.cumsum(pieces.on_gpu)))
    # Summed from the end, so that nothing left is exactly 0 and never a rounding error below.
    left = np.concatenate((np.cumsum(pieces.on_cpu[::-1])[::-1], [0.0])) + pieces.stays.sum()
    level = np.flatnonzero(cpus * given >= gpus * left)
    if len(level) == 0:  # what must stay on the CPUs takes longer than all the rest on the GPUs
        return float(left[-1] / cpus)
    last = int(level[0]) - 1
    if last < 0:
        return 0.0
    to_level = gpus * left[last] - cpus * given[last]
    cut = to_level / (cpus * pieces.on_gpu[last] + gpus * pieces.on_cpu[last])
    return float((given[last] + cut * pieces.on_gpu[last]) / gpus)


def _last_alone(tasks: Tasks, spec: RunSpec, dropped: Bools) -> float:
    """The latest moment at which some task cannot be done even with the cluster to itself."""
    last = float(tasks.arrival_time.max())
    # No task takes longer than on a CPU, so the others end before the last arrival.
    late = np.flatnonzero((tasks.arrival_time + cpu_seconds(tasks, spec) >= last) & ~dropped)
    if len(late) == 0:
        return last
    alone = Tasks(
        tasks.task_id[late],
        tasks.size[late],
        tasks.compute_intensity[late],
        tasks.memory_required[late],
        tasks.arrival_time[late],
    )
    fastest = price(alone, fastest_share(alone, spec), spec).time
    return max(last, float((alone.arrival_time + fastest).max()))
