"""The specs of the runs that advice starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.lab.advice.jobs import BASE_CASE, STRETCHES, Case, GeneratedJobs, TraceJobs
from services.lab.advice.objective_option import parse_objective
from shared.domain.bounds.offered_load import OfferedLoad
from shared.domain.spec import RunSpec
from shared.domain.workload import Cursor, generate
from shared.errors import SpecError

HEADER = "size,compute_intensity,memory_required,arrival_time\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "jobs.csv"
    file.write_text(HEADER + "".join(f"{100 + n},0.5,10,{n}\n" for n in range(30)))
    return file


def offered(spec: RunSpec) -> float:
    tasks, _ = generate(spec, Cursor(), spec.tasks or 0)
    measured = OfferedLoad(spec)
    measured.add(tasks)
    load = measured.load()
    assert load is not None
    return load.cluster


def test_generated_jobs_offer_the_load_that_is_asked_for() -> None:
    jobs = GeneratedJobs({}, 200, 0.8)
    assert offered(jobs.spec(BASE_CASE, 1, ())) == pytest.approx(0.8)
    assert offered(jobs.spec(Case("less", load_factor=0.5), 1, ())) == pytest.approx(0.4)


def test_a_case_changes_nothing_but_what_it_says() -> None:
    jobs = GeneratedJobs({"physics": {"cost_model": "electricity"}}, 200, None)
    asked, noisy = (jobs.spec(case, 3, ("eft",)) for case in (BASE_CASE, Case("n", noise=0.3)))
    assert noisy.physics == asked.physics.model_copy(update={"noise": 0.3})
    assert noisy.workload == asked.workload
    assert (noisy.seed, noisy.schedulers, noisy.lockstep) == (3, ("eft",), True)


def test_a_trace_is_cut_into_stretches_of_consecutive_jobs(trace: Path) -> None:
    jobs = TraceJobs({}, trace, None)
    assert jobs.tasks == 30
    assert -(-jobs.tasks // jobs.stretch) <= STRETCHES
    assert jobs.spec(BASE_CASE, 2, ("eft",)).submitted


def test_the_load_of_a_trace_can_be_set(trace: Path) -> None:
    jobs = TraceJobs({}, trace, 0.5)
    (tasks,) = jobs._batches(BASE_CASE)
    (denser,) = jobs._batches(Case("more", load_factor=2.0))
    assert denser.arrival_time[-1] == pytest.approx(tasks.arrival_time[-1] / 2)
    assert jobs.load == 0.5


def test_objectives() -> None:
    assert parse_objective("turnaround=1, cost=0.2") == {"turnaround": 1.0, "cost": 0.2}
    for wrong in ("speed=1", "cost", "cost=much"):
        with pytest.raises(SpecError, match="NAME=WEIGHT"):
            parse_objective(wrong)
    with pytest.raises(SpecError, match="turnaround"):
        GeneratedJobs({"objective": parse_objective("cost=1")}, 100, None)
