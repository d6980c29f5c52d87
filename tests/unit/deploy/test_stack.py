"""What `hybrid up` is told: how processes are called, which ports and folders fit."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from deploy.local.arena import Ports, StartError
from deploy.local.nats import check_folder, check_nodes, node_names
from deploy.local.stack import parse_scale, policy_label


@pytest.mark.parametrize(
    ("policy", "label"),
    [
        ("greedy", "greedy"),
        ("services.scheduler.frozen:FrozenForest", "frozen"),
        ("mine:Mine", "mine"),
        ("my_scheduler.py", "my_scheduler"),
        ("some.folder/my_scheduler.py", "my_scheduler"),
    ],
)
def test_a_schedulers_processes_are_called_after_its_module_or_file(
    policy: str, label: str
) -> None:
    assert policy_label(policy) == label
    assert parse_scale([f"{label}=3"], {policy_label(policy)}) == {label: 3}


def test_the_ports_of_a_cluster_follow_those_of_its_first_node() -> None:
    assert Ports.of(8000, 4222, 8123).nats_nodes == (4222,)
    three = Ports.of(8000, 4222, 8123, 3)
    assert three.nats_nodes == (4222, 4223, 4224)
    assert three.routes == (6222, 6223, 6224)
    found = Ports.free(3)
    everything = [found.gateway, found.clickhouse, *found.nats_nodes, *found.routes]
    assert len(set(everything)) == 8


def test_a_port_that_another_node_needs_is_checked_too() -> None:
    ports = Ports.free(3)
    for taken in (ports.more_nats[1], ports.routes[0]):
        with (
            socket.create_server(("127.0.0.1", taken)),
            pytest.raises(StartError, match=f"port {taken} for nats .* --nats-port"),
        ):
            ports.check()
    ports.check()


@pytest.mark.parametrize("nodes", [0, 2, 4, 6])
def test_a_cluster_without_a_use_is_refused(nodes: int) -> None:
    with pytest.raises(StartError, match="1, 3, 5"):
        check_nodes(nodes)


@pytest.mark.parametrize(("held", "asked"), [(1, 3), (3, 1), (3, 5), (5, 3)])
def test_the_streams_of_another_number_of_nodes_are_not_lost_sight_of(
    tmp_path: Path, held: int, asked: int
) -> None:
    for name in node_names(held):
        (tmp_path / name).mkdir()
    check_folder(tmp_path, held)
    with pytest.raises(StartError, match=f"--nats-nodes {held}"):
        check_folder(tmp_path, asked)
