"""What the agent chooses among, on small and on large clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from shared.domain.hardware.platform import NOWHERE
from shared.domain.learning.agent_actions import CPU, MOST_OUTPUTS, AgentActions
from shared.domain.spec import RunSpec


def actions_of(*devices: dict[str, Any]) -> AgentActions:
    cluster = {"devices": list(devices)} if devices else {}
    return AgentActions(RunSpec.parse({"cluster": cluster}).platform)


def test_the_default_cluster_has_a_cpu_and_four_gpus_to_choose() -> None:
    actions = actions_of()
    assert len(actions) == 5
    chosen = actions.device(np.array([1, 4, CPU, 2]), np.array([9, 9, 6, 9]))
    assert chosen.tolist() == [0, 3, 2, 1]  # the CPU's: the GPU in rotation, 6 % 4
    assert actions.action_of(np.array([0, 3, 1])).tolist() == [1, 4, 2]
    assert [actions.kind(action) for action in (1, 4)] == [0, 0]


def test_accelerators_behind_the_cpus_have_their_own_numbers() -> None:
    actions = actions_of(
        {"type": "cpu", "count": 2}, {"type": "gpu", "count": 2}, {"type": "tpu", "count": 1}
    )
    assert len(actions) == 4
    assert actions.device(np.array([1, 2, 3]), np.zeros(3, int)).tolist() == [2, 3, 4]
    assert actions.action_of(np.array([2, 3, 4])).tolist() == [1, 2, 3]
    assert [actions.kind(action) for action in (1, 2, 3)] == [1, 1, 2]


def test_of_many_accelerators_the_type_is_chosen_and_its_devices_take_turns() -> None:
    actions = actions_of(
        {"type": "gpu", "count": MOST_OUTPUTS}, {"type": "cpu"}, {"type": "tpu", "count": 3}
    )
    assert len(actions) == 3
    chosen = actions.device(np.array([1, 1, 2, 2, CPU]), np.array([5, 70, 4, 6, 3]))
    assert chosen.tolist() == [5, 6, 66, 65, 3]
    assert actions.action_of(np.array([5, 63, 65, 67])).tolist() == [1, 1, 2, 2]
    assert [actions.kind(action) for action in (1, 2)] == [0, 2]


def test_without_accelerators_only_the_cpu_is_left() -> None:
    actions = actions_of({"type": "cpu", "count": 2})
    assert len(actions) == 1
    assert actions.device(np.zeros(3, int), np.arange(3)).tolist() == [NOWHERE] * 3
