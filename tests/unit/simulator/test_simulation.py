"""A scheduler's simulation: its results, its totals, what it refuses, how it continues."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from services.simulator.simulation import Simulation
from shared.domain.spec import RunSpec
from shared.domain.tasks import Decisions, Tasks
from shared.errors import Unreadable
from shared.messages import batches
from shared.messages.batches import Envelope

SPEC = RunSpec.parse({"cluster": {"cpus": 1, "gpus": 2}})


def decided(
    first: int, tasks: list[tuple[float, float, float, float]], shares: list[float], gpus: list[int]
) -> pa.RecordBatch:
    """Decisions on tasks of (size, intensity, memory, arrival)."""
    size, intensity, memory, arrival = np.array(tasks, dtype=float).T
    columns = Tasks(np.arange(first, first + len(tasks)), size, intensity, memory, arrival)
    decisions = Decisions(np.array(shares, dtype=float), np.array(gpus))
    return batches.decision_rows(batches.task_rows(columns), columns, decisions, SPEC.platform)


# 1 s on the CPU, 0.5 s on a GPU: (1000/1000)^1.5 / (0.5 + 0.5) = 1; 1/2.5 + 1600/16000 = 0.5
EASY = (1000, 0.5, 1600)
# 16 s on the CPU, 17 s on a GPU if it fitted: 4^1.5 / 0.5 = 16; 16 + 16000/16000 = 17
BULKY = (4000, 0, 16_000)

# Task 0: whole on GPU 0 from 0 to 0.5.
# Task 1: half on GPU 0 (0.25 s), from 0.5 to 0.75, then half on the CPU (0.5 s), to 1.25.
# Task 2: whole on the CPU, behind task 1: from 1.25 to 2.25.
# Task 3: whole on GPU 1, where it does not fit: 16 s on the CPU, from 2.25 to 18.25.
BATCH = decided(
    0, [(*EASY, 0), (*EASY, 0), (*EASY, 0.25), (*BULKY, 1)], [1, 0.5, 0, 1], [0, 0, 1, 1]
)


def values(rows: pa.RecordBatch, name: str) -> Any:
    return batches.column(rows, name).tolist()


def envelope_after(simulation: Simulation, batch: int) -> Envelope:
    state = json.loads(json.dumps(simulation.state()))
    return Envelope("results", "run", batch, 0.0, "greedy", state)


def test_a_task_waits_until_its_scheduler_has_decided() -> None:
    spec = RunSpec.parse({"cluster": {"cpus": 1, "gpus": 2}, "physics": {"decision_s": 0.1}})
    rows, _ = Simulation.new(spec).advance(BATCH)
    assert values(rows, "gpu_start")[:2] == pytest.approx([0.1, 0.6])
    # Everything is 0.1 s later, and the times of execution are the same.
    assert values(rows, "finish") == pytest.approx([0.6, 1.35, 2.35, 18.35])
    assert values(rows, "turnaround") == pytest.approx([0.6, 1.35, 2.1, 17.35])
    assert values(rows, "time") == pytest.approx([0.5, 0.75, 1, 16])
    assert values(rows, "wait")[0] == pytest.approx(0.1)


def test_results_follow_from_the_decisions_by_hand() -> None:
    rows, _ = Simulation.new(SPEC).advance(BATCH)
    assert values(rows, "time") == pytest.approx([0.5, 0.75, 1, 16])
    assert values(rows, "gpu_time") == pytest.approx([0.5, 0.25, 0, 0])
    assert values(rows, "cpu_time") == pytest.approx([0, 0.5, 1, 16])
    assert values(rows, "finish") == pytest.approx([0.5, 1.25, 2.25, 18.25])
    assert values(rows, "turnaround") == pytest.approx([0.5, 1.25, 2, 17.25])
    assert values(rows, "wait") == pytest.approx([0, 0.5, 1, 1.25])
    assert values(rows, "energy") == pytest.approx([25, 27.5, 30, 480])
    assert values(rows, "cost_cloud") == pytest.approx([5e-5, 3.5e-5, 2e-5, 32e-5])
    assert values(rows, "cost") == values(rows, "cost_cloud")
    assert values(rows, "status") == ["ok"] * 4
    assert values(rows, "gpu_fraction") == [1, 0.5, 0, 1]  # what was decided, not what ran


def test_the_standing_adds_up_every_task() -> None:
    _, after = Simulation.new(SPEC).advance(BATCH)
    standing = after.standing
    assert (standing.tasks, standing.failed, standing.gpu_tasks) == (4, 0, 2)
    assert standing.total_time == pytest.approx(18.25)
    assert standing.total_wait == pytest.approx(2.75)
    assert standing.total_turnaround == pytest.approx(21)
    assert standing.total_energy == pytest.approx(562.5)
    assert standing.total_cost == standing.total_cost_cloud == pytest.approx(42.5e-5)
    assert standing.total_cost_electricity == pytest.approx(562.5 / 3.6e6 * 0.15)
    assert standing.makespan == pytest.approx(18.25)
    assert standing.clock == 1
    assert standing.busy == pytest.approx([0.75, 0, 17.5])  # GPU 0, GPU 1, the CPU
    # Turnarounds 0.5, 1.25, 2 over 0.5 s on a GPU, 17.25 over 16 s on the CPU.
    assert standing.total_slowdown == pytest.approx(1 + 2.5 + 4 + 17.25 / 16)
    assert standing.turnaround_p50 == pytest.approx(1.25, rel=0.008)
    assert standing.turnaround_p99 == pytest.approx(17.25, rel=0.008)
    assert standing.idle_energy == 0


def test_idle_devices_take_their_idle_power_until_the_last_task_finishes() -> None:
    devices = [
        {"type": "gpu", "count": 2, "idle_watts": 10},
        {"type": "cpu", "idle_watts": 5},
    ]
    spec = RunSpec.parse({"cluster": {"devices": devices}})
    _, after = Simulation.new(spec).advance(BATCH)
    # 18.25 s in all: GPUs work for 0.75 and 0, the CPU for 17.5.
    assert after.standing.idle_energy == pytest.approx(10 * (2 * 18.25 - 0.75) + 5 * 0.75)


def test_a_failed_task_is_charged_the_slowest_device() -> None:
    spec = RunSpec.parse({"cluster": {"gpus": 2}, "physics": {"memory_policy": "fail"}})
    rows, after = Simulation.new(spec).advance(decided(0, [(*BULKY, 3)], [1], [0]))
    assert values(rows, "status") == ["failed"]
    # 16 s on the CPU, 17 s on the GPU: the GPU is busy for 17 s.
    assert values(rows, "finish") == pytest.approx([20])
    assert values(rows, "time") == values(rows, "turnaround") == pytest.approx([17])
    assert values(rows, "energy") == pytest.approx([50 * 17])
    assert (after.standing.tasks, after.standing.failed, after.standing.gpu_tasks) == (1, 1, 1)
    assert after.standing.busy == pytest.approx([17, 0, 0])


def test_the_wait_of_an_overlapped_task_is_what_it_took_beyond_its_execution() -> None:
    # Task 0: g = 0.25 and c = 0.5 at once, ends at 0.5. Task 1 the same on GPU 1, but its CPU
    # part waits until 0.5 and ends at 1: turnaround 1, execution 0.5, wait 0.5.
    spec = RunSpec.parse({"cluster": {"gpus": 2}, "physics": {"split": "overlapped"}})
    batch = decided(0, [(*EASY, 0), (*EASY, 0)], [0.5, 0.5], [0, 1])
    rows, _ = Simulation.new(spec).advance(batch)
    assert values(rows, "time") == pytest.approx([0.5, 0.5])
    assert values(rows, "gpu_start") == [0, 0]
    assert values(rows, "finish") == pytest.approx([0.5, 1])
    assert values(rows, "wait") == pytest.approx([0, 0.5])


def test_a_wait_is_never_negative() -> None:
    random = np.random.default_rng(5)
    tasks = [(*random.uniform((10, 0, 0), (500, 1, 5000)), 100.0 * i) for i in range(2000)]
    batch = decided(0, tasks, random.uniform(0, 1, 2000).tolist(), [i % 2 for i in range(2000)])
    rows, _ = Simulation.new(SPEC).advance(batch)
    assert min(values(rows, "wait")) >= 0
    assert max(values(rows, "wait")) < 1e-9  # 100 s apart, no task waits


def test_advancing_does_not_change_the_simulation() -> None:
    before = Simulation.new(SPEC)
    first, _ = before.advance(BATCH)
    again, _ = before.advance(BATCH)
    assert first.equals(again)
    assert before.state() == Simulation.new(SPEC).state()


def test_a_simulation_continues_from_its_results() -> None:
    _, after = Simulation.new(SPEC).advance(BATCH)
    rebuilt = Simulation.after(SPEC, envelope_after(after, 0))
    assert rebuilt.state() == after.state()
    assert rebuilt.next_batch == 1
    # Arrives at 2, the CPU is busy until 18.25, then 1 s.
    rows, later = rebuilt.advance(decided(4, [(*EASY, 2)], [0], [0]))
    assert values(rows, "finish") == pytest.approx([19.25])
    assert later.standing.tasks == 5
    assert later.next_batch == 2


def test_results_are_a_valid_message() -> None:
    rows, after = Simulation.new(SPEC).advance(BATCH)
    batch = batches.decode(batches.encode(envelope_after(after, 0), rows), "results.run.greedy")
    assert batch.rows.equals(rows)
    assert Simulation.after(SPEC, batch.envelope).state() == after.state()


def test_a_batch_that_is_not_the_next_is_refused() -> None:
    with pytest.raises(Unreadable, match="starts with task 3, task 0 is next"):
        Simulation.new(SPEC).advance(decided(3, [(*EASY, 0)], [0], [0]))
    _, after = Simulation.new(SPEC).advance(BATCH)
    with pytest.raises(Unreadable, match="starts with task 0, task 4 is next"):
        after.advance(BATCH)


def test_a_gpu_that_the_cluster_does_not_have_is_refused() -> None:
    with pytest.raises(Unreadable, match="device 2 is no accelerator of the cluster"):
        Simulation.new(SPEC).advance(decided(0, [(*EASY, 0)], [1], [2]))


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {},
        {"cluster": {}, "standing": {}},
        Simulation.new(SPEC).state() | {"standing": {"tasks": "many"}},
        {"cluster": None, "standing": None},
        {"cluster": {"cpu_free": [0], "gpu_free": [0, 0], "next_task": 0, "finished": "?"}},
        {"cluster": {"cpu_free": [None], "gpu_free": [0, 0], "next_task": 0, "finished": ""}},
    ],
)
def test_a_broken_state_is_unreadable(state: Any) -> None:
    with pytest.raises(Unreadable):
        Simulation.after(SPEC, Envelope("results", "run", 0, 0.0, "greedy", state))


def test_the_state_of_another_cluster_is_refused() -> None:
    envelope = envelope_after(Simulation.new(RunSpec()), 0)
    with pytest.raises(Unreadable, match="not the run's"):
        Simulation.after(SPEC, envelope)
