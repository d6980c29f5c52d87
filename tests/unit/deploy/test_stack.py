"""What `hybrid up` is told: how processes are called, which ports and folders fit."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx
import pytest

from deploy.local.arena import Ports, StartError, find
from deploy.local.nats import check_folder, check_nodes, node_names
from deploy.local.stack import Plan, Stack, _missing, parse_scale, policy_label


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


def stack_in(folder: Path) -> Stack:
    return Stack(Plan(folder, Ports.free(), ("greedy",)))


async def test_a_folder_has_one_arena_from_its_start_to_its_end(tmp_path: Path) -> None:
    first = stack_in(tmp_path)
    # It has not said where it is yet, but the folder is taken.
    assert find(tmp_path) is None
    with pytest.raises(StartError, match=rf"runs in .* already \(process {os.getpid()}\); stop"):
        stack_in(tmp_path)
    first.arena.save()
    found = find(tmp_path)
    assert found is not None
    assert found.url == first.arena.url
    with pytest.raises(StartError, match=rf"\(process {os.getpid()}, {first.arena.url}\)"):
        stack_in(tmp_path)
    assert find(tmp_path) is not None  # nobody else forgets it
    await first.stop()
    assert find(tmp_path) is None
    await stack_in(tmp_path).stop()


KILLED = """
import os, sys
from pathlib import Path
from deploy.local.arena import Ports
from deploy.local.stack import Plan, Stack
stack = Stack(Plan(Path(sys.argv[1]), Ports.free(), ("greedy",)))
stack.arena.save()
os._exit(9)
"""


def test_what_a_killed_arena_left_behind_hinders_nobody(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=60)
    # The number of its process may be another's by now.
    left = (tmp_path / "arena.json").read_text()
    pid = left.partition(",")[0]
    (tmp_path / "arena.json").write_text(left.replace(pid, f'{{"pid": {os.getpid()}'))
    assert find(tmp_path) is None
    stack = stack_in(tmp_path)
    assert find(tmp_path) is None  # those are not the addresses of this one
    asyncio.run(stack.stop())


async def test_a_start_that_fails_leaves_the_folder_free(tmp_path: Path) -> None:
    ports = Ports.free()
    with socket.create_server(("127.0.0.1", ports.nats)):
        for _ in range(2):
            with pytest.raises(StartError, match=f"port {ports.nats} for nats"):
                Stack(Plan(tmp_path, ports, ("greedy",)))
    await stack_in(tmp_path).stop()


@pytest.mark.parametrize("body", ['{"detail": "no"}', "[]", "null", "<html>"])
async def test_an_answer_that_is_no_health_is_one_to_wait_for(body: str) -> None:
    answers = httpx.MockTransport(lambda request: httpx.Response(500, text=body))
    async with httpx.AsyncClient(transport=answers, base_url="http://gateway") as client:
        assert "the gateway" in await _missing(client, Counter())
