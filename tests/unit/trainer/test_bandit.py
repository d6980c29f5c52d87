"""The learner of `bandit`: its posterior, and what it blames a task for."""

from __future__ import annotations

import numpy as np
import pytest

from services.scheduler.policies.bandit import Bandit
from services.trainer.learner import Results
from services.trainer.learners.bandit import (
    BanditLearner,
    delays_caused,
    device_of,
    posterior,
)
from services.trainer.observed_queues import queues_before
from shared.domain.spec import RunSpec
from shared.domain.tasks import Floats
from shared.domain.workload import Cursor, generate
from tests.unit.trainer.own_results import pretraining_tasks, results_of


def spec_of(rate: float = 24, noise: float = 0.0) -> RunSpec:
    return RunSpec.parse(
        {"seed": 5, "workload": {"arrival_rate": rate}, "physics": {"noise": noise}}
    )


def results_with_queues(count: int = 300) -> tuple[RunSpec, Results]:
    spec = spec_of(rate=40)
    return spec, results_of(Bandit(), None, spec, generate(spec, Cursor(), count)[0])


def first_model(spec: RunSpec) -> bytes:
    update = BanditLearner(spec).pretrain(pretraining_tasks(spec))
    assert update is not None
    return update.body


def test_the_posterior_is_weighted_ridge_regression_around_the_prior() -> None:
    """The same as least squares with a row for each coefficient that says what the prior does."""
    random = np.random.default_rng(0)
    x, y, weight = random.normal(size=(50, 4)), random.normal(size=50), random.uniform(1, 2, 50)
    strength, centre = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 0.0, -1.0, 2.0])
    rows = np.concatenate([x * np.sqrt(weight)[:, None], np.diag(np.sqrt(strength))])
    values = np.concatenate([y * np.sqrt(weight), np.sqrt(strength) * centre])
    expected = np.linalg.lstsq(rows, values, rcond=None)[0]
    precision, found = posterior(strength, centre, x, y, weight)
    assert found == pytest.approx(expected)
    assert precision == pytest.approx(rows.T @ rows)


def test_queues_are_what_was_left_of_the_tasks_before() -> None:
    spec, results = results_with_queues()
    arrival, device = results.tasks.arrival_time, device_of(results)
    found = queues_before(results, device, len(spec.platform))
    free = [0.0] * len(spec.platform)
    for row, now in enumerate(arrival.tolist()):
        assert found[row] == pytest.approx([max(end - now, 0.0) for end in free])
        free[device[row]] = max(free[device[row]], now) + results.time[row]
    assert found.max() > 0.5


def total_wait(arrival: Floats, time: Floats, without: int = -1) -> float:
    """The total wait of the tasks of one device; one of them may be left out."""
    free = total = 0.0
    for row, (now, takes) in enumerate(zip(arrival.tolist(), time.tolist(), strict=True)):
        if row != without:
            total += max(free - now, 0.0)
            free = max(free, now) + takes
    return total


def test_a_task_caused_the_delay_that_would_not_be_without_it() -> None:
    spec, results = results_with_queues()
    device = device_of(results)
    queued = queues_before(results, device, len(spec.platform))
    found = delays_caused(results, device, queued)
    for number in range(len(spec.platform)):
        rows = np.flatnonzero(device == number)
        arrival, time = results.tasks.arrival_time[rows], results.time[rows]
        everything = total_wait(arrival, time)
        for place, row in enumerate(rows):
            own = queued[row, number]
            saved = everything - own - total_wait(arrival, time, without=place)
            assert found[row] == pytest.approx(saved, abs=1e-9)


def test_without_results_it_believes_in_earliest_finish() -> None:
    spec = spec_of()
    tasks, _ = generate(spec, Cursor(), 1000)
    sure = spec.model_copy(
        update={
            "learning": spec.learning.model_copy(
                update={"bandit": spec.learning.bandit.model_copy(update={"doubt": 0.0})}
            )
        }
    )
    by_model = results_of(Bandit(), first_model(sure), sure, tasks)
    by_rule = results_of(Bandit(), None, sure, tasks)
    assert by_model.turnaround == pytest.approx(by_rule.turnaround)


def test_it_beats_earliest_finish_under_load() -> None:
    spec = spec_of(rate=27)
    tasks, _ = generate(spec, Cursor(), 6000)
    by_rule = results_of(Bandit(), None, spec, tasks)
    update = BanditLearner(spec).learn(first_model(spec), by_rule.last(2000), 2000, 2)
    assert update is not None
    unseen, _ = generate(spec.model_copy(update={"seed": 6}), Cursor(), 6000)
    learned = results_of(Bandit(), update.body, spec, unseen).turnaround.mean()
    assert learned < 0.8 * results_of(Bandit(), None, spec, unseen).turnaround.mean()


def test_to_learn_twice_gives_the_same_bytes() -> None:
    spec = spec_of(noise=0.3)
    model = first_model(spec)
    results = results_of(Bandit(), model, spec, generate(spec, Cursor(), 800)[0])
    once = BanditLearner(spec).learn(model, results, 300, 2)
    again = BanditLearner(spec).learn(model, results, 300, 2)
    assert once is not None
    assert again is not None
    assert once.body == again.body
