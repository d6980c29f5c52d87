"""The learner behind `attention_agent`: policy iteration with roll-outs, from top to bottom.

    policy    the device with the least score = finish + prices * seconds + correction
    network   one token for the task, one per device, one layer of attention; the correction per
              device, which is 0 at first (see shared/domain/learning/attention_network.py)
    states    queues that streams of tasks meet under the current policy, which now and then
              explores; tasks and arrivals are drawn from a sample
    costs     of each state and each device: the cost of the task placed there and, discounted, of
              the later tasks, from a roll-out on the virtual cluster; the same tasks follow for
              all devices, so the noise of what comes next cancels out in the difference
    loss      the expected cost of a softmax policy over the scores, all devices counted
    judge     of several networks the one with the least mean cost on the same other streams

In pre-training the sample consists of generated tasks. In the first rounds the later tasks are
placed by the base rule, whose roll-outs are cheap, then by the network itself. During the run the
sample is the newest results: their arrivals, and their real seconds on the device type that ran
them. For other types it has the expected seconds, times the ratio of real and expected time of a
result there.

Rollout algorithms: Bertsekas, Tsitsiklis, Wu, "Rollout algorithms for combinatorial optimization",
1997. Loss over all actions: Sutton et al., "Policy gradient methods", 1999. The hyperparameters are
fields of `RunSpec.learning.attention`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from safetensors.numpy import load, save
from torch import Tensor, nn

from services.trainer.adam import Adam
from services.trainer.learner import Learner, Results, Update
from services.trainer.observed_queues import queues_before
from shared.domain.learning.attention_network import (
    DYNAMIC_FEATURES,
    SHAPES,
    STATIC_FEATURES,
    TASK_FEATURES,
    AttentionNetwork,
    DeviceTypes,
    guarded,
    queue_features,
    task_features,
)
from shared.domain.learning.rollouts import Rollouts, Sample, Score, Streams
from shared.domain.physics import whole_seconds
from shared.domain.schedulers import ATTENTION
from shared.domain.spec import RunSpec
from shared.domain.spec_parts.learning_spec import Attention
from shared.domain.tasks import Floats, Integers, Tasks
from shared.domain.times import seconds

# Fewer tasks than this say too little about what comes next.
FEWEST_TASKS = 50


class Network(nn.Module):
    """The network of `AttentionNetwork`, with gradients. Its parameters are the model's tensors."""

    def __init__(self, width: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        sizes = {
            "task_features": TASK_FEATURES,
            "static_features": STATIC_FEATURES,
            "dynamic_features": DYNAMIC_FEATURES,
            "d": width,
            "h": hidden,
        }
        for name, shape in SHAPES.items():
            tensor = torch.zeros([sizes[size] for size in shape])
            if len(shape) == 2:  # biases and the last layer are 0 at first
                tensor.normal_(0, math.sqrt(1 / sizes[shape[0]]), generator=generator)
            self.register_parameter(name, nn.Parameter(tensor))

    def forward(self, task: Tensor, static: Tensor, dynamic: Tensor) -> Tensor:
        weights = dict(self.named_parameters())
        of_task = torch.relu(task @ weights["task"] + weights["task_bias"])
        of_devices = static @ weights["static"] + weights["static_bias"]
        devices = torch.relu(of_devices + dynamic @ weights["dynamic"])
        tokens = torch.cat([of_task[:, None], devices], dim=1)
        similarity = devices @ weights["query"] @ tokens.transpose(1, 2) / devices.shape[-1] ** 0.5
        attention = (1 + similarity) ** 2 + 1
        attention = attention / attention.sum(dim=-1, keepdim=True)
        mixed = devices + attention @ (tokens @ weights["value"])
        hidden = torch.relu(mixed @ weights["up"] + weights["up_bias"])
        return hidden @ weights["down"]


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """States, and the cost of each placement in them, in mean task times above the cheapest."""

    task: Tensor
    static: Tensor
    dynamic: Tensor
    base: Tensor  # the base rule's score
    cost: Tensor
    impossible: Tensor

    def __len__(self) -> int:
        return len(self.cost)

    def rows(self, rows: Tensor | int) -> TrainingSet:
        return TrainingSet(*(getattr(self, field.name)[rows] for field in fields(self)))


class AttentionLearner(Learner):
    """Makes the models of `attention_agent`: tensors of 32 bits and the time scale."""

    name = ATTENTION

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(spec.without_noise)
        torch.set_num_threads(1)  # sums of several threads are rounded in another order each time
        self.rule: Attention = spec.learning.attention
        self.types = DeviceTypes.of(spec)

    @property
    def window(self) -> int:
        return self.rule.window

    @property
    def every(self) -> int:
        return self.rule.learn_every

    def pretrain(self, tasks: Tasks) -> Update | None:
        random = np.random.default_rng([self.spec.seed, 1])
        sample = sample_of(tasks, self.spec)
        if len(sample) < FEWEST_TASKS:
            return None
        rule, network = self.rule, self._new_network()
        rollouts = self._rollouts(sample)
        rounds = [(rule.base_states, False)] * rule.base_rounds
        rounds += [(rule.own_states, True)] * rule.own_rounds
        candidates = [self._tensors(network, sample.time_scale)]
        examples: dict[bool, list[TrainingSet]] = {False: [], True: []}
        for states, own in rounds:
            examples[own].append(self._training_set(rollouts, candidates[-1], states, own, random))
            self._fit(network, join(examples[own]), rule.steps, rule.learning_rate, random)
            candidates.append(self._tensors(network, sample.time_scale))
        best, metrics = self._judge(rollouts, candidates, random)
        reason = f"the best of {len(rounds)} rounds on generated tasks"
        return Update(save(best), reason, metrics, trained_on=len(tasks))

    def learn(self, model: bytes | None, results: Results, new: int, version: int) -> Update | None:
        random = np.random.default_rng([self.spec.seed, version])
        rule, sample = self.rule, sample_from(results, self.spec, random)
        if len(sample) < FEWEST_TASKS:
            return None if model is None else Update(model, "too few results", trained_on=0)
        network, rollouts = self._new_network(), self._rollouts(sample)
        current = self._tensors(network, sample.time_scale) if model is None else load(model)
        current |= {"running_price": self.types.running_price}  # the objective may have changed
        start = rescaled(current, sample.time_scale)
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                parameter.copy_(torch.tensor(start[name]))
        examples = self._training_set(rollouts, start, rule.learn_states, True, random)
        self._fit(network, examples, rule.learn_steps, rule.learn_rate, random)
        candidates = {
            "the network before is still the best": current,
            "better than the network before": self._tensors(network, float(start["time_scale"])),
            "without corrections: tasks have changed": {**start, "down": 0 * start["down"]},
        }
        best, metrics = self._judge(rollouts, list(candidates.values()), random)
        metrics["guarded"] = self._guarded(current, results, new)
        reason = next(reason for reason, each in candidates.items() if each is best)
        return Update(save(best), reason, metrics, trained_on=len(results))

    def _rollouts(self, sample: Sample) -> Rollouts:
        """Roll-outs on a cluster of a few devices, with as much work for each as in the run."""
        few = self.types.shrunk(self.rule.most_devices)
        times_fewer = len(self.types.type_of) / len(few.type_of)
        return Rollouts(replace(sample, gap=sample.gap * times_fewer), few)

    def _new_network(self) -> Network:
        generator = torch.Generator().manual_seed(self.spec.seed % 2**63)
        return Network(self.rule.width, self.rule.hidden, generator)

    def _tensors(self, network: Network, time_scale: float) -> dict[str, Floats]:
        """The tensors of a model, with 32 bits, as training has them."""
        tensors = {name: each.detach().numpy().copy() for name, each in network.named_parameters()}
        running_price = self.types.running_price
        return {**tensors, "time_scale": np.array(time_scale), "running_price": running_price}

    def _training_set(
        self,
        rollouts: Rollouts,
        tensors: dict[str, Floats],
        states: int,
        own: bool,
        random: np.random.Generator,
    ) -> TrainingSet:
        """States met by the network, and what each placement costs if the network itself, or else
        the base rule, places the tasks behind."""
        rule, sample = self.rule, rollouts.sample
        network = AttentionNetwork(tensors, np.float32)
        score = rollouts.corrected(network)
        times = rule.warm_up + 2 * np.arange(-(-states // rule.streams))
        length = int(times[-1]) + 1 + rule.horizon
        streams = Streams.draw(sample, length, rule.streams, rule.rate_spread, random)
        queued = rollouts.states(streams, score, times, rule.explore, random)
        later: Score = score if own else rollouts.base
        costs = rollouts.costs_to_go(
            queued, streams, times, later, rule.horizon, rule.discount, rule.most_tried
        )
        task = streams.task[times].reshape(-1)
        return self._encode(rollouts, queued.reshape(costs.shape), task, costs, network.time_scale)

    def _encode(
        self, rollouts: Rollouts, queued: Floats, task: Integers, costs: Floats, time_scale: float
    ) -> TrainingSet:
        types, possible = rollouts.types, np.isfinite(costs)
        of_task, of_types = task_features(rollouts.sample.expected[task], types, time_scale)
        finish = queued + rollouts.expected[task]
        dynamic = queue_features(queued / time_scale, finish / time_scale)
        base = np.where(possible, rollouts.base(queued, task), 0.0) / time_scale
        above = np.where(possible, costs - costs.min(axis=1, keepdims=True), 0.0) / time_scale
        return TrainingSet(
            task=floats(of_task),
            static=floats(of_types[:, types.type_of]),
            dynamic=floats(dynamic),
            base=floats(base),
            cost=floats(above),
            impossible=torch.tensor(~possible),
        )

    def _fit(
        self,
        network: Network,
        examples: TrainingSet,
        steps: int,
        rate: float,
        random: np.random.Generator,
    ) -> None:
        """Lower the expected cost of a softmax policy over the scores."""
        rule = self.rule
        optimiser = Adam(network.parameters(), rate)
        rows = torch.from_numpy(random.integers(0, len(examples), (steps, rule.batch)))
        drawn = examples.rows(rows)
        for step in range(steps):
            optimiser.rate = rate * (1 - step / steps)
            batch = drawn.rows(step)
            correction = network(batch.task, batch.static, batch.dynamic)
            score = (batch.base + correction) / rule.temperature
            score = score.masked_fill(batch.impossible, math.inf)
            loss = (torch.softmax(-score, dim=1) * batch.cost).sum(dim=1).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), rule.clip)
            optimiser.step()

    def _judge(
        self, rollouts: Rollouts, candidates: list[dict[str, Floats]], random: np.random.Generator
    ) -> tuple[dict[str, Floats], dict[str, float]]:
        """The candidate with the least mean cost on the same streams; the first of equal ones."""
        rule = self.rule
        streams = Streams.draw(
            rollouts.sample, rule.judge_tasks, rule.judge_streams, rule.rate_spread, random
        )

        def cost(score: Score) -> float:
            return float(rollouts.mean_cost(streams, score).mean())

        networks = (AttentionNetwork(tensors, np.float32) for tensors in candidates)
        costs = [cost(rollouts.corrected(network)) for network in networks]
        best = int(np.argmin(costs))
        return candidates[best], {"cost_over_eft": costs[best] / cost(rollouts.earliest_finish)}

    def _guarded(self, tensors: dict[str, Floats], results: Results, new: int) -> float:
        """For which share of the new tasks the guard takes the choice of `eft`."""
        type_of, network = self.types.type_of, AttentionNetwork(tensors)
        queued = queues_before(results, _device_of(results), len(type_of))[-new:]
        tasks = results.last(new).tasks
        expected = whole_seconds(tasks, self.spec, seconds(tasks, self.spec))
        of_task, of_types = network.embed(expected, self.types)
        prices, count = self.types.score_per_second[type_of], 0
        parts = len(tasks) * len(type_of) ** 2 // 10**6 + 1  # attention is between all devices
        for rows in np.array_split(np.arange(len(tasks)), parts):
            on_device = expected[rows][:, type_of]
            finish = queued[rows] + on_device
            devices = of_types[rows][:, type_of]
            with np.errstate(invalid="ignore"):  # a task that no device can run
                correction = network.correction(of_task[rows], devices, queued[rows], finish)
            chosen = (finish + on_device * prices + correction).argmin(axis=1)
            choice = np.take_along_axis(finish, chosen[:, None], axis=1)[:, 0]
            count += int(guarded(choice, finish.min(axis=1), self.rule.guard).sum())
        return count / len(tasks)


def floats(values: Floats) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)


def join(parts: list[TrainingSet]) -> TrainingSet:
    """Join the states of all policies so far: what was learned of them must not be forgotten."""
    columns = ([getattr(part, field.name) for part in parts] for field in fields(TrainingSet))
    return TrainingSet(*(torch.cat(column) for column in columns))


def rescaled(tensors: dict[str, Floats], time_scale: float) -> dict[str, Floats]:
    """With another time scale, if tasks have become much longer or shorter: then the network does
    in the new unit of time what it did in the old one."""
    if 0.5 < time_scale / float(tensors["time_scale"]) < 2.0:
        return tensors
    return {**tensors, "time_scale": np.array(time_scale)}


def sample_of(tasks: Tasks, spec: RunSpec) -> Sample:
    """A sample of generated tasks, which take as long as expected."""
    expected = whole_seconds(tasks, spec, seconds(tasks, spec))
    return _possible(gaps(tasks), expected, expected)


def sample_from(results: Results, spec: RunSpec, random: np.random.Generator) -> Sample:
    """A sample of tasks that have run, with the real seconds of the device type that ran them. For
    other types the ratio of real and expected seconds is that of some task that ran there."""
    expected = whole_seconds(results.tasks, spec, seconds(results.tasks, spec))
    ran_on = spec.platform.type_of[_device_of(results)]
    split = (results.gpu_time > 0) & (results.cpu_time > 0)
    real, usual = expected.copy(), np.take_along_axis(expected, ran_on[:, None], axis=1)[:, 0]
    known = ~results.failed & ~split & np.isfinite(usual) & (usual > 0)
    ratio = np.divide(results.time, usual, out=np.ones(len(usual)), where=known)
    for kind in range(expected.shape[1]):
        own_ratios = ratio[known & (ran_on == kind)]
        if len(own_ratios):
            factor = random.choice(own_ratios, len(ratio))
            real[:, kind] *= np.where(known & (ran_on == kind), ratio, factor)
    return _possible(gaps(results.tasks), expected, real)


def gaps(tasks: Tasks) -> Floats:
    """From each arrival to the next; the first one gets the mean."""
    between = np.maximum(np.diff(tasks.arrival_time), 0.0)
    return np.concatenate([[between.mean() if len(between) else 0.0], between])


def _device_of(results: Results) -> Integers:
    """The device that each task ran on; of a split one the accelerator."""
    return np.where(results.gpu_time > 0, results.device, results.cpu)


def _possible(gap: Floats, expected: Floats, real: Floats) -> Sample:
    """A sample without the tasks that no device can run; the gaps before these are left out."""
    rows = np.isfinite(expected).any(axis=1) & (expected.min(axis=1) > 0)
    return Sample(gap[rows], expected[rows], real[rows])
