"""What `rl_agent` learns from: states, actions, rewards and the states after them, of results and
of tasks that have not run."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from services.trainer.learner import Results
from services.trainer.observed_queues import queues_before
from services.trainer.simulated_placements import simulated_placements
from shared.domain.learning.agent_actions import CPU, AgentActions
from shared.domain.learning.features import Matrix, agent_state
from shared.domain.learning.objective import reference
from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats, Integers, Tasks
from shared.domain.times import seconds

# Transitions in simulated queues, for each task and action.
PLACEMENTS_PER_TASK = 4
# At most this many results times devices, since their queues are all in memory.
MOST_QUEUES = 10_000_000


@dataclass(frozen=True, slots=True)
class Transitions:
    """Columns of equal length. The state is that of `features.agent_state`; if the agent observes
    the cluster, the queue of each action follows, in units of the scale."""

    task_id: Integers  # -1: generated
    state: Matrix
    action: Integers
    reward: Floats
    next_state: Matrix

    def __len__(self) -> int:
        return len(self.action)

    def rows(self, rows: slice | np.ndarray) -> Transitions:
        return Transitions(*(getattr(self, field.name)[rows] for field in fields(self)))


class TransitionsOfRun:
    """Makes the transitions of one run."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec, self.actions = spec, AgentActions(spec.platform)
        self.sees_queues = spec.learning.agent.observes == "cluster"

    def average_reward(self, tasks: Tasks) -> float:
        """The average reward of every action of the tasks, without waiting and without its sign."""
        of_actions = [reward(*each, self.spec) for each in self._time_and_energy(tasks)]
        return float(np.abs(np.concatenate(of_actions)).mean()) or 1.0

    def of_tasks(self, tasks: Tasks, scale: float) -> Transitions:
        """Every action of tasks that have not run, with the reward of the physics."""
        time, energy = (np.array(each) for each in zip(*self._time_and_energy(tasks), strict=True))
        if self.sees_queues:
            return self._in_simulated_queues(tasks, time, energy, scale)
        state, count = agent_state(tasks), len(self.actions)
        return Transitions(
            task_id=np.full(count * len(tasks), -1),
            state=np.tile(state, (count, 1)),
            action=np.repeat(np.arange(count), len(tasks)),
            reward=reward(time, energy, self.spec).ravel() / scale,
            next_state=np.tile(following(state), (count, 1)),
        )

    def _in_simulated_queues(
        self, tasks: Tasks, time: Floats, energy: Floats, scale: float
    ) -> Transitions:
        placements = min(PLACEMENTS_PER_TASK * time.size, self.spec.learning.agent.replay // 2)
        gap = np.maximum(np.diff(tasks.arrival_time), 0.0)
        random = np.random.default_rng([self.spec.seed, len(tasks)])
        simulated = simulated_placements(
            time.T, gap, self.actions, len(self.spec.platform), placements, random
        )
        state, rows = agent_state(tasks), np.arange(len(simulated.task))
        turnaround = (
            simulated.queued[rows, simulated.action] + time[simulated.action, simulated.task]
        )
        used = energy[simulated.action, simulated.task]
        return Transitions(
            task_id=np.full(len(rows), -1),
            state=_with_queues(state[simulated.task], simulated.queued, scale),
            action=simulated.action,
            reward=reward(turnaround, used, self.spec) / scale,
            next_state=_with_queues(state[simulated.next_task], simulated.next_queued, scale),
        )

    def of_results(self, results: Results, scale: float) -> Transitions:
        """The transitions of results. Decisions of the fallback rule (a share between 0 and 1) are
        left out, since they are not actions of the agent."""
        time, state = results.time, agent_state(results.tasks)
        if self.sees_queues:
            devices = len(self.spec.platform)
            results = results.last(max(MOST_QUEUES // devices, 1))
            ran_on = np.where(results.share > 0, results.device, results.cpu)
            queued = self.actions.least(queues_before(results, ran_on, devices))
            time, state = results.turnaround, _with_queues(state[-len(results) :], queued, scale)
        share = results.share
        transitions = Transitions(
            task_id=results.tasks.task_id,
            state=state,
            action=np.where(share > 0, self.actions.action_of(results.device), CPU),
            reward=reward(time, results.energy, self.spec) / scale,
            next_state=following(state),
        )
        return transitions.rows((share == 0.0) | (share == 1.0))

    def _time_and_energy(self, tasks: Tasks) -> list[tuple[Floats, Floats]]:
        """The expected time and energy of each action."""
        times, of_type = seconds(tasks, self.spec), dict[int, tuple[Floats, Floats]]()
        of_actions = []
        for action in range(len(self.actions)):
            kind = -1 if action == CPU else self.actions.kind(action)
            if kind not in of_type:
                share = np.full(len(tasks), 0.0 if action == CPU else 1.0)
                device = self.actions.device(np.full(len(tasks), action), tasks.task_id)
                priced = price(tasks, share, self.spec, device, times=times)
                of_type[kind] = (priced.time, priced.energy)
            of_actions.append(of_type[kind])
        return of_actions


def reward(time: Floats, energy: Floats, spec: RunSpec) -> Floats:
    """The reward, with energy in seconds at full power."""
    weight, platform = spec.learning.energy_weight, spec.platform
    power = max(reference(platform.watts, platform), 1e-9)
    return -((1 - weight) * time + weight * energy / power)


def following(state: Matrix) -> Matrix:
    """The state after each of these, whose tasks follow each other; after the last one, its own."""
    return np.concatenate([state[1:], state[-1:]])


def _with_queues(state: Matrix, queued: Floats, scale: float) -> Matrix:
    return np.concatenate([state, (queued / scale).astype(np.float32)], axis=1)
