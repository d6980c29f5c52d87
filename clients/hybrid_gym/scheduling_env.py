"""One run of the arena as a Gymnasium environment: a step places one task on a device.

The environment takes the place of worker and simulator: a `ClusterView` shows the cluster to the
policy, and `price` and `virtual_cluster` compute the result of its decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from hybrid_gym.run_specs import EPISODE_TASKS, SEEDS, AnySpec, observation_space, read_spec
from shared.domain.cluster import virtual_cluster
from shared.domain.cluster.cluster_view import ClusterView
from shared.domain.cluster.observation import Observation
from shared.domain.cluster.virtual_cluster import Cluster
from shared.domain.cluster.whole_tasks import placement
from shared.domain.learning.agent_observation import AgentObserver, Numbers
from shared.domain.learning.objective import penalty
from shared.domain.physics import price
from shared.domain.tasks import Tasks, take
from shared.domain.workload import Cursor, generate


class SchedulingEnv(gymnasium.Env[Numbers, np.int64]):
    """Places the tasks of a run, whole, one after the other.

    Action: the number of a device. Observation: the task's features, then those of each device (see
    `shared.domain.learning.agent_observation`). Reward: minus what the agents of the arena
    minimise, the weighted sum of the task's turnaround, energy and cost, in units of the mean task
    time. An episode has `tasks` tasks, and is truncated after the last, which is then observed with
    the queues after it.

    The episode after `reset(seed=s)` is the run with seed s; later ones draw their seeds. `info`
    has it as `run_seed`, and after a step what became of the task.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  as gymnasium declares it

    def __init__(self, spec: AnySpec = None, tasks: int = EPISODE_TASKS) -> None:
        self.run_spec, self.tasks = read_spec(spec), tasks
        self._observer = AgentObserver(self.run_spec.without_noise)
        self.time_scale = self._observer.time_scale
        self.observation_space: Box = observation_space(self._observer)  # type: ignore[assignment]
        self.action_space: Discrete = Discrete(self._observer.devices)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Numbers, dict[str, Any]]:
        super().reset(seed=seed)
        run_seed = int(self.np_random.integers(SEEDS)) if seed is None else seed
        self._spec = self.run_spec.model_copy(update={"seed": run_seed})
        tasks, _ = generate(self._spec, Cursor(), self.tasks)
        self._stream: Tasks = tasks
        self._rows = self._observer.rows(tasks)
        cluster = Cluster.idle(self._observer.devices)
        self._view = ClusterView(cluster, Observation(cluster.copy()), tasks, self._spec)
        self._simulated = Cluster.idle(self._observer.devices)
        self._arrivals: Iterator[int] = self._view.arrivals()
        self._row = next(self._arrivals)
        return self._observe(), {"run_seed": run_seed}

    def step(self, action: np.int64) -> tuple[Numbers, float, bool, bool, dict[str, Any]]:
        row, device = self._row, int(action)
        self._view.place(device)
        result = self._simulate(row, device)
        following = next(self._arrivals, None)
        truncated = following is None
        self._row = row if following is None else following
        reward = -result["penalty"] / self.time_scale
        return self._observe(), reward, False, truncated, result

    def action_masks(self) -> NDArray[np.bool_]:
        """The devices that can run the current task; placed on another one, it runs elsewhere or
        fails."""
        return np.isfinite(self._view.seconds())

    def _observe(self) -> Numbers:
        out = np.empty(self._observer.width, np.float32)
        view, row = self._view, self._row
        task, types = self._rows.task[row], self._rows.types[row]
        self._observer.fill(out, task, types, view.queued(), view.finish() - view.now)
        return out

    def _simulate(self, row: int, device: int) -> dict[str, Any]:
        """The result that the simulator would give the decision."""
        spec, one = self._spec, take(self._stream, slice(row, row + 1))
        share, accelerator, cpu = placement(device, 1, spec.platform)
        accelerator, cpu = spec.platform.complete(one.task_id, share, accelerator, cpu)
        priced = price(one, share, spec, accelerator, cpu)
        decided, split = one.delayed(spec.physics.decision_s), spec.physics.split
        schedule = virtual_cluster.run(
            self._simulated, decided, accelerator, cpu, priced, split, spec.platform
        )
        turnaround = schedule.finish - one.arrival_time
        columns = {
            "turnaround": turnaround,
            "time": priced.time,
            "energy": priced.energy,
            "cost": priced.cost,
            "penalty": penalty(turnaround, priced.energy, priced.cost, spec),
        }
        return {name: float(column[0]) for name, column in columns.items()}
