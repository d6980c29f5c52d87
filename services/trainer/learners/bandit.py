"""The learner behind `bandit`: the posterior of a linear model of what a placement costs.

The cost of a task is computed from the scheduler's own results: its turnaround, and a share of the
delay that it caused: later tasks on its device, up to the next idle time, would have started
earlier without it. Without this second part only earliest finish could be learned.

The posterior is that of Agrawal and Goyal: "Thompson Sampling for Contextual Bandits with Linear
Payoffs", 2013, around earliest finish instead of 0, of the newest results only, each weighted
by what its task should cost about: larger costs vary more.
"""

from __future__ import annotations

import numpy as np
from safetensors import numpy as safetensors

from services.trainer.learner import Learner, Results, Update
from services.trainer.observed_queues import queues_before
from shared.domain.hardware.platform import NOWHERE
from shared.domain.learning import bandit_features
from shared.domain.learning.objective import charge
from shared.domain.physics import whole_seconds
from shared.domain.schedulers import BANDIT
from shared.domain.spec import RunSpec
from shared.domain.tasks import Bools, Floats, Integers, Tasks
from shared.domain.times import seconds


class BanditLearner(Learner):
    name = BANDIT

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(spec.without_noise)
        self.rule, self.platform = spec.learning.bandit, spec.platform
        # Energy and money of a second on each device type, in seconds of turnaround.
        self.charge = charge(spec) / spec.objective.turnaround

    @property
    def window(self) -> int:
        return self.rule.window

    @property
    def every(self) -> int:
        return self.rule.retrain_every

    def pretrain(self, tasks: Tasks) -> Update | None:
        """The prior: earliest finish. The tasks only tell how long an average one is."""
        if not len(tasks):
            return None
        fastest = whole_seconds(tasks, self.spec, seconds(tasks, self.spec)).min(axis=1)
        possible = fastest[np.isfinite(fastest)]
        scale = float(possible.mean()) if len(possible) else 1.0
        return self._update(*self._prior(), scale, 1.0, 0, "prior")

    def learn(self, model: bytes | None, results: Results, new: int, version: int) -> Update | None:
        scale = float(safetensors.load(model)["scale"][0]) if model else float(results.time.mean())
        device = device_of(results)
        rows = np.flatnonzero(device != NOWHERE)
        if not len(rows):
            return None
        type = self.platform.type_of[device[rows]]
        expected = seconds(results.tasks, self.spec)[rows, type]
        queued = queues_before(results, device, len(self.platform))
        cost = results.turnaround + self.rule.blame * delays_caused(results, device, queued)
        cost[rows] += self.charge[type] * results.time[rows]
        load, wait = queued.mean(axis=1)[rows], queued[rows, device[rows]]
        x = bandit_features.features(expected, load, wait, type, len(self.platform.types), scale)
        weight = 1.0 / (scale + wait + expected * (1.0 + load / scale)) ** 2
        precision, centre = posterior(*self._prior(), x * scale, cost[rows] * scale, weight)
        misses = (cost[rows] - x @ centre) * np.sqrt(weight) * scale
        return self._update(precision, centre, scale, float(misses.std()), len(rows), "learned")

    def _prior(self) -> tuple[Floats, Floats]:
        types = len(self.platform.types)
        return np.full(bandit_features.count(types), self.rule.prior), (
            bandit_features.earliest_finish(types)
        )

    def _update(
        self, precision: Floats, centre: Floats, scale: float, noise: float, trained_on: int,
        verb: str,
    ) -> Update:  # fmt: skip
        """The model: the centre, and what turns independent normal numbers into deviations."""
        matrix = np.diag(precision) if precision.ndim == 1 else precision
        root = np.linalg.cholesky(np.linalg.inv(matrix)) * noise
        body = safetensors.save({"centre": centre, "root": root, "scale": np.array([scale])})
        types = [each.name for each in self.platform.types]
        names = [*bandit_features.COMMON, *(f"second_{each}" for each in types)]
        metrics = {name: float(each) for name, each in zip(names, centre, strict=True)}
        return Update(body, f"{verb} of {trained_on} results", metrics, trained_on)


def posterior(
    prior_precision: Floats, prior_centre: Floats, x: Floats, y: Floats, weight: Floats
) -> tuple[Floats, Floats]:
    """Precision matrix and centre of the coefficients of y = x c, for a prior without
    correlations."""
    precision = np.diag(prior_precision) + (x * weight[:, None]).T @ x
    moment = prior_precision * prior_centre + x.T @ (weight * y)
    return precision, np.asarray(np.linalg.solve(precision, moment), np.float64)


def device_of(results: Results) -> Integers:
    """The device that ran each task completely, or NOWHERE."""
    on_device: Bools = (results.gpu_time > 0) & (results.cpu_time == 0)
    on_cpu: Bools = (results.cpu_time > 0) & (results.gpu_time == 0)
    device = np.where(on_device, results.device, np.where(on_cpu, results.cpu, NOWHERE))
    return np.where(results.failed, NOWHERE, device)


def delays_caused(results: Results, device: Integers, queued: Floats) -> Floats:
    """Seconds that the tasks behind each task would have started earlier without it. It delays all
    that follow on its device until one finds the device idle, by its own time at most and less
    once the device would have been idle in between."""
    caused = np.zeros(len(device))
    for number in range(queued.shape[1]):
        rows = np.flatnonzero(device == number)
        if len(rows):
            caused[rows] = _delays(queued[rows, number], results.time[rows])
    return caused


def _delays(wait: Floats, time: Floats) -> Floats:
    """The delays that each task of one device causes, in order. Without task i, each of the tasks
    behind it waits min(time of i, least wait since) less."""
    caused = np.zeros(len(wait))
    # The tasks in front that still delay the current one: by how much, and which they are.
    delays: list[tuple[float, int]] = []
    for row, (waits, takes) in enumerate(zip(wait.tolist(), time.tolist(), strict=True)):
        delays = [(min(delay, waits), by) for delay, by in delays] if waits > 0 else []
        for delay, by in delays:
            caused[by] += delay
        delays.append((takes, row))
    return caused
