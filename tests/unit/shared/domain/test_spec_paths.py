"""Changes of a spec that are given as paths."""

from __future__ import annotations

from typing import Any

import pytest

from shared.domain.spec import RunSpec
from shared.domain.spec_parts.workload_presets import ARRIVAL_RATES
from shared.domain.spec_paths import changed_spec
from shared.errors import SpecError

SPEC = RunSpec.parse(
    {
        "schedulers": ["greedy"],
        "cluster": {"devices": [{"type": "cpu", "count": 2}, {"type": "gpu", "count": 4}]},
    }
)


def changed(*changes: str) -> dict[str, Any]:
    return changed_spec(SPEC, changes).model_dump(mode="json")


def test_a_field_of_an_entry_is_set() -> None:
    devices = changed("cluster.devices.1.count=5", "cluster.devices.1.dollars_per_s=0.25")
    assert [each["count"] for each in devices["cluster"]["devices"]] == [2, 5]
    assert devices["cluster"]["devices"][1]["dollars_per_s"] == 0.25


def test_an_entry_is_removed_or_added() -> None:
    fewer, more = changed("cluster.devices.0=null"), changed("cluster.devices.2={type: tpu}")
    assert [each["type"] for each in fewer["cluster"]["devices"]] == ["gpu"]
    assert [each["type"] for each in more["cluster"]["devices"]] == ["cpu", "gpu", "tpu"]


def test_names_are_given_with_commas_or_as_yaml() -> None:
    assert changed("schedulers=eft, heft")["schedulers"] == ["eft", "heft"]
    assert changed("schedulers=[eft, heft]")["schedulers"] == ["eft", "heft"]


def test_another_preset_brings_its_figures() -> None:
    assert (
        changed("workload.preset=hpc")["workload"]["mix"]
        == (RunSpec.parse({"workload": {"preset": "hpc"}}).workload.model_dump(mode="json")["mix"])
    )
    assert changed("workload.preset=hpc")["workload"]["arrival_rate"] == ARRIVAL_RATES["hpc"]


def test_no_change_is_the_same_spec() -> None:
    assert changed_spec(SPEC, []) == SPEC


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("cluster.devices.1.cuont=5", r"cluster.devices.1.cuont: .*did you mean count\?.*allowed"),
        ("cluster.devices.7.count=5", "cluster.devices.7.count: .*no entry 7; allowed: 0 to 1"),
        ("cluster.devices.1.count=0", "cluster.devices.1.count: .*greater than or equal to 1"),
        ("workload.arrival_rate=fast", "workload.arrival_rate: .*number"),
        ("seed.x=1", "seed.x: seed is 42, which has no fields"),
        ("nothing", "PATH=VALUE"),
        ("name={", "name: '{' is not valid YAML"),
    ],
)
def test_a_wrong_change_names_the_path_and_what_is_allowed(change: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        changed(change)


def test_all_wrong_paths_are_named() -> None:
    with pytest.raises(SpecError) as caught:
        changed("foo=1", "bar=2")
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["foo", "bar"]
