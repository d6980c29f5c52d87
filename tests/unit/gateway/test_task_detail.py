"""Explanations of a task of size 1000, intensity 0.5 and 1600 MB: 1 s on the CPU, 400 ms of compute
and 100 ms of transfer on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from services.gateway.tasks.detail import detail_of
from shared.domain.spec import RunSpec
from shared.messages.columns import RESULT


def row(share: float, gpu_time: float, cpu_time: float, **fields: Any) -> dict[str, Any]:
    values = {
        **{column.name: column.default for column in RESULT if column.since > 1},
        "task_id": 3,
        "scheduler": "greedy",
        "gpu_fraction": share,
        "device": 2,
        "cpu": 4,
        "model_version": 0,
        "explored": False,
        "probability": 1.0,
        "expected_time": 0.0,
        "turn": -1,
        "predicted": [],
        "scores": [],
        "time": gpu_time + cpu_time,
        "wait": 0.0,
        "turnaround": gpu_time + cpu_time,
        "energy": 1.0,
        "cost": 2.0,
        "cost_cloud": 2.0,
        "cost_electricity": 3.0,
        "gpu_time": gpu_time,
        "cpu_time": cpu_time,
        "gpu_start": 0.0,
        "cpu_start": 0.0,
        "finish": 1.0,
        "status": "ok",
        "size": 1000.0,
        "compute_intensity": 0.5,
        "memory_required": 1600.0,
        "arrival_time": 0.0,
        "dependencies": [1],
        "kind": "",
        "divisible": True,
        "width": 1,
        "home": -1,
        "last_child": -1,
    }
    return {**values, **fields}


def explained(values: dict[str, Any], cluster: dict[str, Any] | None = None, **physics: Any) -> str:
    spec = RunSpec.parse({"schedulers": ["greedy"], "cluster": cluster or {}, "physics": physics})
    return detail_of("r", spec, {"greedy": values}).results[0].explanation


# Two nodes, each with two V100 (twice as fast as the default GPU) and a CPU; a TPU in a third node
# that has no CPU. Devices 0 to 3 are V100, 4 the TPU, 5 and 6 the CPUs.
NODES: dict[str, Any] = {
    "devices": [
        {"type": "v100", "count": 2, "node": "rack", "memory_mb": 1000, "speed": 2},
        {"type": "tpu", "node": "pod", "memory_mb": 32000, "speed": 4, "speedup_slope": 0},
        {"type": "cpu", "node": "rack"},
    ],
    "nodes": [{"name": "rack", "count": 2}, {"name": "pod"}],
    "network": {"bandwidth_mb_s": 8000, "latency_s": 0.05},
}


def test_the_physics_of_a_task() -> None:
    spec = RunSpec.parse({"schedulers": ["greedy"]})
    detail = detail_of("r", spec, {"greedy": row(1, 0.5, 0), "oracle": row(0.5, 0.2, 0.05)})
    physics = detail.physics.model_dump(exclude={"types"})
    names = {"best_device": physics.pop("best_device"), "best_cpu": physics.pop("best_cpu")}
    assert names == {"best_device": "gpu_3", "best_cpu": None}
    assert physics == pytest.approx(
        {
            "cpu_seconds": 1.0,
            "gpu_seconds": 0.5,
            "speedup": 2.5,
            "transfer_seconds": 0.1,
            "fits_gpu_memory": True,
            "best_share": 1.0,
            "best_seconds": 0.5,
        }
    )
    assert detail.task.dependencies == [1]
    assert detail.results[0].vs_oracle == pytest.approx(2)
    assert (detail.results[0].actual_time, detail.results[0].execution_cost) == (0.5, 2.0)
    assert (detail.results[0].time, detail.results[0].cost) == (0.5, 2.0)
    assert (detail.results[0].device_name, detail.results[0].cpu_name) == ("gpu_2", None)
    assert (detail.results[1].device_name, detail.results[1].cpu_name) == ("gpu_2", "cpu_0")


def test_every_device_type_has_its_time() -> None:
    """The V100 computes 2 * (1 + 3 * 0.5) = 5 times as fast as the CPU, the TPU 4 times."""
    spec = RunSpec.parse({"schedulers": ["greedy"], "cluster": NODES})
    detail = detail_of("r", spec, {"greedy": row(1, 0.3, 0)})
    v100, tpu, cpu = (each.model_dump() for each in detail.physics.types)
    same = {"measured": None}
    assert v100 == {**same, "type": "v100", "accelerator": True, "devices": 4,
                    "expected_seconds": pytest.approx(0.3), "real_seconds": pytest.approx(0.3),
                    "transfer_seconds": pytest.approx(0.1), "fits_memory": False,
                    "speedup": pytest.approx(5)}  # fmt: skip
    assert tpu == {**same, "type": "tpu", "accelerator": True, "devices": 1,
                   "expected_seconds": pytest.approx(0.35), "real_seconds": pytest.approx(0.35),
                   "transfer_seconds": pytest.approx(0.1), "fits_memory": True,
                   "speedup": pytest.approx(4)}  # fmt: skip
    assert cpu == {**same, "type": "cpu", "accelerator": False, "devices": 2,
                   "expected_seconds": 1.0, "real_seconds": 1.0, "transfer_seconds": 0.0,
                   "fits_memory": True, "speedup": 1.0}  # fmt: skip
    assert (detail.physics.best_device, detail.physics.best_cpu) == ("pod/tpu_0", None)
    assert detail.physics.best_seconds == pytest.approx(0.35)


def test_the_real_time_differs_from_the_expected_one_with_noise() -> None:
    spec = RunSpec.parse({"schedulers": ["greedy"], "physics": {"noise": 0.3}})
    detail = detail_of("r", spec, {"greedy": row(1, 0.5, 0)})
    for each in detail.physics.types:
        assert each.real_seconds != each.expected_seconds
        assert 0.1 < each.real_seconds / each.expected_seconds < 10


def test_a_type_that_was_not_measured_cannot_run_the_task() -> None:
    """Measured at 500 and 1000: size 1000 is within, size 2000 is continued, potrf on the CPU is
    missing."""
    curves = [
        {"kind": "gemm", "type": "gpu", "sizes": [500, 1000], "seconds": [1, 8]},
        {"kind": "gemm", "type": "cpu", "sizes": [500, 2000], "seconds": [2, 128]},
        {"kind": "potrf", "type": "gpu", "sizes": [500, 1000], "seconds": [1, 8]},
    ]
    spec = RunSpec.parse({"schedulers": ["greedy"], "physics": {"measured": curves}})
    no_memory = {"memory_required": 0.0}
    gemm = detail_of("r", spec, {"greedy": row(1, 64, 0, kind="gemm", size=2000.0, **no_memory)})
    found = [(each.expected_seconds, each.measured) for each in gemm.physics.types]
    assert found == [(pytest.approx(64), False), (pytest.approx(128), True)]
    potrf = row(0.25, 8, 0, kind="potrf", **no_memory)
    detail = detail_of("r", spec, {"greedy": potrf})
    gpu, cpu = detail.physics.types
    assert (gpu.expected_seconds, gpu.measured, gpu.speedup) == (pytest.approx(8), True, 1.0)
    assert (cpu.expected_seconds, cpu.real_seconds, cpu.measured) == (None, None, False)
    assert detail.physics.cpu_seconds is None
    assert detail.results[0].explanation == (
        "cpu_0 cannot run it, so all of it ran on gpu_2: 8 s of compute; no decision is faster"
    )


def test_a_split_task() -> None:
    assert explained(row(0.5, 0.25, 0.5)) == (
        "50 % ran on gpu_2: 200 ms of compute and 50 ms of transfer, then the rest on cpu_0: "
        "500 ms; the Oracle's decision, all of it on gpu_3, would have taken 500 ms"
    )


def test_the_best_decision() -> None:
    assert explained(row(1, 0.5, 0)) == (
        "all of it ran on gpu_2: 400 ms of compute and 100 ms of transfer; no decision is faster"
    )


def test_a_task_that_waited_on_the_cpu() -> None:
    assert explained(row(0, 0, 1, wait=2.5)) == (
        "all of it ran on cpu_0: 1 s, after 2.5 s of waiting; "
        "the Oracle's decision, all of it on gpu_3, would have taken 500 ms"
    )


def test_overlapped_parts() -> None:
    """Both end together at 2/3: 1/3 s."""
    text = explained(row(0.5, 0.25, 0.5, time=0.5), split="overlapped")
    assert text == (
        "50 % ran on gpu_2: 200 ms of compute and 50 ms of transfer, while the rest ran on cpu_0: "
        "500 ms; the Oracle's decision, 66.7 % on gpu_3, the rest on cpu_0, would have taken 333 ms"
    )


def test_memory_that_does_not_fit() -> None:
    large = {"memory_required": 16000.0}
    assert explained(row(0.75, 0, 1, **large)) == (
        "75 % (12,000 MB) does not fit the 8,000 MB of gpu_2, so all of it ran on cpu_0: 1 s; "
        "no decision is faster"
    )
    assert explained(row(1, 1, 0, status="failed", **large), memory_policy="fail") == (
        "failed: all of it (16,000 MB) does not fit the 8,000 MB of gpu_2; it was charged as if it "
        "had run on the slowest device type that can run it: 1 s"
    )
    assert explained(row(1, 1.9, 0, **large), memory_policy="page") == (
        "all of it ran on gpu_2: 400 ms of compute and 1.5 s of transfer (what does not fit is "
        "moved twice); the Oracle's decision, all of it on cpu_0, would have taken 1 s"
    )


def test_negligible_differences() -> None:
    assert explained(row(0.9999, 0.49995, 0.0001)) == (
        "nearly all of it ran on gpu_2: 400 ms of compute and 100 ms of transfer; "
        "no decision is noticeably faster"
    )


def test_a_task_of_another_node() -> None:
    """1600 MB at 8000 MB/s and 50 ms of latency: 250 ms from rack-0 to the TPU. In rack-0, the 1000
    MB that fit a V100 are 62.5 % of it: 0.625 * 0.3 s + 0.375 * 1 s."""
    assert explained(row(1, 0.6, 0, device=4, cpu=-1, home=0), NODES) == (
        "all of it ran on pod/tpu_0: 250 ms of compute, 100 ms of transfer and 250 ms to move its "
        "data from rack-0 to pod; the Oracle's decision, 62.5 % on rack-0/v100_1, the rest on "
        "rack-0/cpu_0, would have taken 562 ms"
    )
    text = explained(row(0, 0, 1.25, cpu=5, home=1), NODES)
    assert text.startswith(
        "all of it ran on rack-0/cpu_0: 1.25 s, of which 250 ms to move its data from rack-1 to "
        "rack-0; the Oracle's"
    )


def test_a_task_that_cannot_be_split() -> None:
    assert explained(row(0.5, 0.5, 0, divisible=False)) == (
        "it cannot be split, so all of it ran on gpu_2: 400 ms of compute and 100 ms of transfer; "
        "no decision is faster"
    )


def test_a_wide_task() -> None:
    """Two V100 have 2000 MB: it fits."""
    assert explained(row(1, 0.3, 0, device=1, cpu=5, width=2, divisible=False), NODES) == (
        "all of it ran on rack-0/v100_1 and 1 more: 200 ms of compute and 100 ms of transfer; "
        "no decision is faster"
    )


def test_a_task_that_nothing_can_run() -> None:
    row_of_failure = row(0, 0, 0, status="failed", width=9)
    assert explained(row_of_failure) == "failed: none of the chosen devices can run it"


def test_a_failed_task_of_an_older_version_was_not_charged() -> None:
    values = row(1, 0, 0, status="failed", memory_required=16000.0)
    assert explained(values, memory_policy="fail") == (
        "failed: all of it (16,000 MB) does not fit the 8,000 MB of gpu_2"
    )
