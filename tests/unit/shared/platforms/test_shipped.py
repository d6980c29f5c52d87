"""The shipped platforms, against the data sheets and against the default cluster."""

from __future__ import annotations

import numpy as np
import pytest

from shared.domain.physics import price
from shared.domain.spec import RunSpec
from shared.domain.times import seconds
from shared.domain.workload import Cursor, generate
from shared.platforms.platform_file import shipped

# TFLOP/s of float32 products and GB/s of memory, from the data sheets that the files name; those
# of the machine's own CPU, and those of the accelerator.
CPUS = {
    "workstation": (16 * 4.5 * 32 / 1000, 2 * 5.2 * 8),
    "dgx": (56 * 2.0 * 64 / 1000, 8 * 4.8 * 8),
    "rack": (20 * 2.1 * 64 / 1000, 6 * 2.933 * 8),
}
GPUS = {
    ("workstation", "rtx4090"): (82.6, 1008),
    ("workstation", "rtx3060"): (12.7, 360),
    ("dgx", "h100"): (989 / 2, 3350),
    ("dgx", "a100"): (156, 2039),
    ("rack", "a100"): (156, 1555),
    ("rack", "t4"): (8.1, 320),
}


def spec_of(name: str) -> RunSpec:
    return RunSpec.parse(shipped()[name].spec_fields())


@pytest.mark.parametrize(("name", "device"), GPUS)
def test_speeds_are_the_ratios_of_memory_bandwidth_and_of_peak_rates(
    name: str, device: str
) -> None:
    rate, bandwidth = GPUS[name, device]
    cpu_rate, cpu_bandwidth = CPUS[name]
    kind = next(each for each in spec_of(name).platform.types if each.name == device)
    assert kind.speed == pytest.approx(bandwidth / cpu_bandwidth, rel=1e-3)
    full_speed = kind.speed * (1 + kind.speedup_slope)
    assert full_speed == pytest.approx(rate / cpu_rate, rel=2e-3)


# USD per hour of an instance, and how many of the devices it has.
PRICES = {
    ("dgx", "h100"): (98.32, 8),
    ("dgx", "a100"): (40.97, 8),
    ("dgx", "cpu"): (9.6768, 2),
    ("rack", "a100"): (32.77, 8),
    ("rack", "t4"): (0.526, 1),
    ("rack", "cpu"): (4.08, 2),
    # Launch prices, over the hours of three years.
    ("workstation", "rtx4090"): (1599 / (3 * 365 * 24), 1),
    ("workstation", "rtx3060"): (329 / (3 * 365 * 24), 1),
    ("workstation", "cpu"): (699 / (3 * 365 * 24), 1),
}


@pytest.mark.parametrize(("name", "device"), PRICES)
def test_dollars_are_the_share_of_a_list_price(name: str, device: str) -> None:
    per_hour, devices = PRICES[name, device]
    kind = next(each for each in spec_of(name).platform.types if each.name == device)
    assert kind.dollars_per_s == pytest.approx(per_hour / devices / 3600, rel=2e-3)


def test_every_platform_names_its_sources() -> None:
    assert set(shipped()) == {"seeds", "workstation", "dgx", "rack"}
    assert all(platform.sources and platform.description for platform in shipped().values())


def test_the_rack_has_ten_nodes_and_a_network() -> None:
    platform = spec_of("rack").platform
    assert len(platform.node_names) == 10
    assert {each.name: each.count for each in platform.types} == {"a100": 8, "t4": 16, "cpu": 20}
    assert spec_of("rack").cluster.network.bandwidth_mb_s == 12_500


def test_the_seeds_node_is_the_default_cluster_to_the_last_bit() -> None:
    default, seeds = RunSpec(), spec_of("seeds")
    tasks, _ = generate(default, Cursor(), 2000)
    assert np.array_equal(seconds(tasks, default), seconds(tasks, seeds))
    assert seeds.platform.device_names(range(5)) == default.platform.device_names(range(5))
    share = np.linspace(0, 1, 2000)
    device, cpu = default.platform.complete(tasks.task_id, share)
    assert np.array_equal(device, seeds.platform.complete(tasks.task_id, share)[0])
    one, other = (price(tasks, share, spec, device, cpu) for spec in (default, seeds))
    for name in type(one).__slots__:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
