"""What `hybrid up` starts: names of processes, ports and folders."""

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

from deploy.local.arena import FREE_PORT_RANGE, Ports, StartError, find
from deploy.local.nats import check_folder, check_nodes, node_names
from deploy.local.stack import Plan, Stack, _health_problem, parse_scale, policy_label
from services.cli.up import choose_ports
from shared.domain.schedulers import BUILT_IN, LEARNERS


@pytest.mark.parametrize(
    ("policy", "label"),
    [
        ("greedy", "greedy"),
        ("services.scheduler.frozen_forest:FrozenForest", "frozen_forest"),
        ("mine:Mine", "mine"),
        ("my_scheduler.py", "my_scheduler"),
        ("some.folder/my_scheduler.py", "my_scheduler"),
    ],
)
def test_a_schedulers_processes_are_named_after_its_module_or_file(policy: str, label: str) -> None:
    assert policy_label(policy) == label
    assert parse_scale([f"{label}=3"], {policy_label(policy)}) == {label: 3}


def test_the_ports_of_a_cluster_follow_those_of_its_first_node() -> None:
    assert Ports.of().nats_nodes == (4222,)
    three = Ports.of(3)
    assert three.nats_nodes == (4222, 4223, 4224)
    assert three.routes == (6222, 6223, 6224)
    free = Ports.free(3)
    ports = [free.gateway, free.clickhouse, *free.nats_nodes, *free.routes]
    assert len(set(ports)) == 8


def test_auto_ports_keeps_the_ports_that_are_given() -> None:
    given = choose_ports(True, 1, 8100, None, 9123)
    assert (given.gateway, given.clickhouse) == (8100, 9123)
    assert given.nats in FREE_PORT_RANGE
    assert choose_ports(False, 1, 8100, None, None) == Ports(8100, 4222, 8123)


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
def test_an_even_number_of_nats_nodes_is_refused(nodes: int) -> None:
    with pytest.raises(StartError, match="1, 3, 5"):
        check_nodes(nodes)


@pytest.mark.parametrize(("stored", "requested"), [(1, 3), (3, 1), (3, 5), (5, 3)])
def test_a_folder_with_streams_of_another_number_of_nodes_is_refused(
    tmp_path: Path, stored: int, requested: int
) -> None:
    for name in node_names(stored):
        (tmp_path / name).mkdir()
    check_folder(tmp_path, stored)
    with pytest.raises(StartError, match=f"--nats-nodes {stored}"):
        check_folder(tmp_path, requested)


def stack_in(folder: Path) -> Stack:
    return Stack(Plan(folder, Ports.free(), ("greedy",)))


async def test_a_folder_has_at_most_one_arena(tmp_path: Path) -> None:
    first = stack_in(tmp_path)
    # It has no arena.json yet, but holds the lock.
    assert find(tmp_path) is None
    with pytest.raises(StartError, match=rf"runs in .* already \(process {os.getpid()}\); stop"):
        stack_in(tmp_path)
    first.arena.save()
    running = find(tmp_path)
    assert running is not None
    assert running.url == first.arena.url
    with pytest.raises(StartError, match=rf"\(process {os.getpid()}, {first.arena.url}\)"):
        stack_in(tmp_path)
    assert find(tmp_path) is not None  # the failed start did not remove its file
    await first.stop()
    assert find(tmp_path) is None
    await stack_in(tmp_path).stop()


async def test_packed_are_the_rules_that_are_not_scaled(tmp_path: Path) -> None:
    stack = Stack(Plan(tmp_path, Ports.free(), BUILT_IN, {"greedy": 3}, pack=True))
    packed = set(stack._packed())
    assert packed == set(BUILT_IN) - set(LEARNERS) - {"greedy"}
    await stack.stop()


KILLED = """
import os, sys
from pathlib import Path
from deploy.local.arena import Ports
from deploy.local.stack import Plan, Stack
stack = Stack(Plan(Path(sys.argv[1]), Ports.free(), ("greedy",)))
stack.arena.save()
os._exit(9)
"""


def test_the_files_of_a_killed_arena_do_not_block_a_new_one(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=60)
    # Its process id may belong to another process by now.
    stored = (tmp_path / "arena.json").read_text()
    pid = stored.partition(",")[0]
    (tmp_path / "arena.json").write_text(stored.replace(pid, f'{{"pid": {os.getpid()}'))
    assert find(tmp_path) is None
    stack = stack_in(tmp_path)
    assert find(tmp_path) is None  # the old addresses are gone
    asyncio.run(stack.stop())


async def test_a_start_that_fails_leaves_the_folder_free(tmp_path: Path) -> None:
    ports = Ports.free()
    with socket.create_server(("127.0.0.1", ports.nats)):
        for _ in range(2):
            with pytest.raises(StartError, match=f"port {ports.nats} for nats"):
                Stack(Plan(tmp_path, ports, ("greedy",)))
    await stack_in(tmp_path).stop()


@pytest.mark.parametrize("body", ['{"detail": "no"}', "[]", "null", "<html>"])
async def test_a_response_that_is_no_health_report_is_a_problem(body: str) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(500, text=body))
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        assert "the gateway" in await _health_problem(client, Counter())
