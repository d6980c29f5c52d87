"""A subject names the run and the scheduler of its messages."""

from __future__ import annotations

import pytest

from shared.messages import subjects

RUN, SCHEDULER = "run-2024-1", "least_loaded"


@pytest.mark.parametrize(
    "subject",
    [
        subjects.tasks(RUN),
        subjects.decisions(RUN, SCHEDULER),
        subjects.results(RUN, SCHEDULER),
        subjects.placed(RUN, SCHEDULER),
        subjects.model(RUN, SCHEDULER),
        subjects.first_model(RUN, SCHEDULER),
        subjects.decide(RUN, SCHEDULER),
        subjects.execution(RUN, SCHEDULER),
    ],
)
def test_the_run_is_read_from_a_subject(subject: str) -> None:
    assert subjects.run_of(subject) == RUN


@pytest.mark.parametrize(
    "subject", [subjects.decisions(RUN, SCHEDULER), subjects.results(RUN, SCHEDULER)]
)
def test_the_scheduler_is_read_from_a_subject(subject: str) -> None:
    assert subjects.scheduler_of(subject) == SCHEDULER
