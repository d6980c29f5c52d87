"""What a spec may say of real runs."""

from __future__ import annotations

from typing import Any

import pytest

from shared.domain.spec import RunSpec
from shared.errors import SpecError

DEVICES = [{"type": "cpu", "real": {"cores": [0], "library": "plain", "copy": True}}]


def real(**fields: Any) -> RunSpec:
    return RunSpec.parse({"execution": "real", "cluster": {"devices": DEVICES}, **fields})


def test_runs_are_simulated_unless_the_spec_says_otherwise() -> None:
    assert not RunSpec.parse({}).real
    assert real().real
    assert real() == real(execution={"mode": "real", "stretch_tasks": 100})


def test_learners_of_a_real_run_learn_by_wall_clock() -> None:
    assert RunSpec.parse({"pace": "max", "tasks": 100}).lockstep
    assert not real(pace="max", tasks=100).lockstep


def test_a_real_spec_survives_the_run_book() -> None:
    spec = real()
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.cluster.devices[0].real is not None
    assert spec.cluster.devices[0].real.explicit_fields() == {
        "cores": (0,), "library": "plain", "copy": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"cluster": {}}, "each with a `real` block"),
        ({"cluster": {"devices": [*DEVICES, {"type": "gpu"}]}}, "without one: gpu"),
        ({"cluster": {"devices": DEVICES, "nodes": [{"name": "node", "count": 2}]}}, "one node"),
        ({"learning": {"sync": "lockstep"}}, "wall clock"),
        ({"workload": {"widths": [{"width": 1}]}}, "one device each"),
        ({"execution": "quick"}, "execution.mode"),
    ],
)
def test_what_cannot_be_executed_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        real(**fields)
