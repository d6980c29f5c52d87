"""The arena in real containers: every service, few rights, and no loss when one is stopped."""

from __future__ import annotations

import pytest
import yaml
from docker.models.containers import Container

from tests.containers.cluster import ROOT, SLOW, Cluster
from tests.containers.load import Load
from tests.counting import COUNTED, once
from tests.e2e.arena import FINGERPRINT, RULES
from tests.real_results import ROWS, SPEC, check_rows
from tests.waiting import until

SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
PROFILE = "real"
STARTED = sorted(
    name for name, service in SERVICES.items() if service.get("profiles", [PROFILE]) == [PROFILE]
)
TASKS = 20_000

DEVICE_PROCESS = "shared.execution.child"
# The executor is the only child of the container's init, which ends with it.
KILL_EXECUTOR = """
import os, pathlib, signal
os.kill(int(pathlib.Path("/proc/1/task/1/children").read_text().split()[0]), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster(tmp_path_factory.mktemp("cluster"), SLOW, COMPOSE_PROFILES=PROFILE)


def test_every_service_of_the_file_runs(cluster: Cluster) -> None:
    assert set(cluster.services) == {*STARTED, "scheduler-slow"}


@pytest.mark.parametrize("service", STARTED)
def test_a_container_has_no_more_rights_than_it_needs(cluster: Cluster, service: str) -> None:
    for container in cluster.containers(service):
        host = container.attrs["HostConfig"]
        assert container.attrs["Config"]["User"] not in ("", "0", "root", "0:0")
        assert host["CapDrop"] == ["ALL"]
        assert "no-new-privileges:true" in host["SecurityOpt"]
        assert host["ReadonlyRootfs"]
        assert not host["Privileged"]
        assert host["Memory"] > 0
        code, _ = container.exec_run(["sh", "-c", "echo x > /usr/nobody-writes-here"])
        assert code != 0


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_any_container_may_be_restarted_or_killed_in_the_middle_of_a_run(
    cluster: Cluster, how: str
) -> None:
    """Restarted in turn, or killed -9: what came out is what an undisturbed run gives."""
    spec = {"tasks": TASKS, "seed": 7, "schedulers": list(RULES)}
    undisturbed = cluster.start_run(**spec, pace="max")
    cluster.complete(undisturbed)
    load = Load(cluster, **spec, pace=200)
    for service in STARTED:
        load.wait_for_more("tasks_sent")
        for container in cluster.containers(service):
            if how == "restart":
                container.restart(timeout=30)
            else:
                container.kill("SIGKILL")
                # Docker does not restart a container that was killed by hand.
                container.start()
    expected = cluster.sql(FINGERPRINT.format(run=undisturbed))
    for run in load.complete():
        assert cluster.sql(COUNTED.format(run=run)) == once(TASKS, RULES)
        assert cluster.sql(FINGERPRINT.format(run=run)) == expected
    cluster.wait_until_healthy()


def test_workers_come_and_go_under_load(cluster: Cluster) -> None:
    load = Load(cluster, tasks=TASKS, seed=8, pace=400, schedulers=["greedy", "slow"])
    for workers in (4, 2, 1):
        cluster.scale("scheduler-slow", workers)
        assert len(cluster.containers("scheduler-slow")) == workers
        load.wait_for_more("tasks_processed")
    for run in load.complete():
        assert cluster.sql(COUNTED.format(run=run)) == once(TASKS, ["greedy", "slow"])


@pytest.mark.parametrize("how", ["kill the container", "kill the process"])
def test_an_executor_killed_in_a_real_run_loses_and_doubles_nothing(
    cluster: Cluster, how: str
) -> None:
    (executor,) = cluster.containers("executor")
    assert not device_processes(executor)
    run = cluster.start_run(**SPEC)
    cluster.wait_for(run, lambda status: status["tasks_processed"] > 5)
    devices = device_processes(executor)
    assert len(devices) == len(SPEC["cluster"]["devices"])
    if how == "kill the container":
        executor.kill("SIGKILL")
        executor.start()  # Docker does not restart what was killed by hand
    else:
        executor.exec_run(["python", "-c", KILL_EXECUTOR])
    cluster.complete(run)
    check_rows(cluster.sql(ROWS.format(run=run)))
    until(lambda: not device_processes(executor), "no device process is left")


def device_processes(executor: Container) -> list[str]:
    found = executor.top(ps_args="-eo pid,args")["Processes"]
    return [pid for pid, command in found if DEVICE_PROCESS in command]
