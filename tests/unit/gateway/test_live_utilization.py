from __future__ import annotations

from services.gateway.live.utilization import UtilizationAverages
from shared.domain.spec import RunSpec


def test_every_device_counts_the_same() -> None:
    """300 TPUs and 100 CPUs, a meter for each type: (0.3 * 300 + 0.7 * 100) / 400 = 0.4."""
    cluster = {"devices": [{"type": "tpu", "count": 300}, {"type": "cpu", "count": 100}]}
    platform = RunSpec.parse({"cluster": cluster}).platform
    now = {"a": {"tpu": 0.2, "cpu": 0.6}, "b": {"tpu": 0.4, "cpu": 0.8}}
    shown = UtilizationAverages(platform.meters).of(now, {"b": now["b"]}).model_dump()
    assert shown == {
        "average_utilization": 0.4,
        "types": {"tpu": 0.3, "cpu": 0.7},
        "tpu": {"utilization": 0.3},
        "cpu": {"utilization": 0.7},
        "schedulers": {
            "b": {
                "average_utilization": 0.5,
                "types": {"tpu": 0.4, "cpu": 0.8},
                "devices": {"tpu": 0.4, "cpu": 0.8},
            }
        },
    }


def test_a_type_is_the_mean_of_its_devices() -> None:
    platform = RunSpec.parse({"cluster": {"gpus": 2, "cpus": 1}}).platform
    now = {"a": {"gpu_0": 0.1, "gpu_1": 0.3, "cpu_0": 0.8}}
    shown = UtilizationAverages(platform.meters).of(now, now)
    assert shown.types == {"gpu": 0.2, "cpu": 0.8}
    assert shown.average_utilization == 0.4


def test_without_results_everything_is_idle() -> None:
    platform = RunSpec.parse({"cluster": {"gpus": 1}}).platform
    shown = UtilizationAverages(platform.meters).of({}, {})
    assert (shown.average_utilization, shown.types) == (0, {"gpu": 0, "cpu": 0})
