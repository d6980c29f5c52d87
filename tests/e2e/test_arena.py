"""The arena as a user meets it: the command line, run control, what is stored."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from shared.domain.schedulers import BUILT_IN
from tests.e2e.arena import QUICK, RULES, ArenaProcess, hybrid
from tests.waiting import until


@pytest.fixture
def arena(shared_arena: ArenaProcess) -> ArenaProcess:
    return shared_arena


def test_what_is_stored_is_what_the_physics_says(arena: ArenaProcess) -> None:
    run = arena.start_run(tasks=3000, pace="max", seed=3)
    arena.complete(run)
    rows = arena.sql(
        "SELECT t.size AS size, t.compute_intensity AS intensity, t.memory_required AS memory, "
        "r.time AS time, r.energy AS energy, r.cost AS cost, r.gpu_fraction AS share "
        "FROM scheduler_results AS r FINAL INNER JOIN tasks AS t FINAL USING (run, task_id) "
        f"WHERE run = '{run}' AND scheduler = 'greedy' ORDER BY task_id"
    )
    assert len(rows) == 3000
    size, intensity, memory, share, time_, energy, cost = (
        np.array([row[name] for row in rows])
        for name in ("size", "intensity", "memory", "share", "time", "energy", "cost")
    )
    assert (share == intensity).all()
    share = np.where(share * memory > 8000, 0, share)  # what does not fit runs on the CPU
    cpu = (1 - share) * (size / 1000) ** 1.5 / (intensity + 0.5)
    gpu = share * ((size / 1000) ** 1.5 / (intensity + 0.5) / (1 + 3 * intensity) + memory / 16000)
    np.testing.assert_allclose(time_, gpu + cpu, rtol=1e-12)
    np.testing.assert_allclose(energy, 50 * gpu + 30 * cpu, rtol=1e-12)
    np.testing.assert_allclose(cost, 1e-4 * gpu + 2e-5 * cpu, rtol=1e-12)


@pytest.mark.parametrize("split", ["serial", "overlapped"])
@pytest.mark.parametrize("memory_policy", ["cpu", "page", "fail"])
def test_oracle_is_never_slower_on_any_task(
    arena: ArenaProcess, split: str, memory_policy: str
) -> None:
    physics = {"split": split, "memory_policy": memory_policy}
    run = arena.start_run(tasks=5000, pace="max", seed=8, physics=physics)
    arena.complete(run)
    (row,) = arena.sql(
        "SELECT count() AS pairs, countIf(o.time > r.time * (1 + 1e-12)) AS beaten "
        "FROM scheduler_results AS r FINAL "
        "INNER JOIN (SELECT task_id, time, status FROM scheduler_results FINAL "
        f"WHERE run = '{run}' AND scheduler = 'oracle') AS o USING (task_id) "
        f"WHERE run = '{run}' AND r.status = 'ok' AND o.status = 'ok'"
    )
    assert row["beaten"] == 0
    assert row["pairs"] >= 5000 * 4


@pytest.mark.long
def test_a_paused_run_stays_paused_over_a_restart_of_everything(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    spec = tmp_path / "quick.json"
    spec.write_text(json.dumps({"pace": 200, "seed": 9, "learning": QUICK}))
    first = ArenaProcess(folder, "--spec", str(spec))
    run = first.announced["run"]
    first.wait_for(run, lambda status: status["tasks_processed"] > 50)
    paused = hybrid("run", "pause", "--data-dir", str(folder))
    assert paused.returncode == 0, paused.stderr
    first.wait_for(
        run, lambda s: s["state"] == "paused" and s["tasks_processed"] == s["tasks_sent"]
    )
    before = first.status(run)
    assert first.stop() == 0

    second = ArenaProcess(folder)
    try:
        assert second.announced["run"] == run
        time.sleep(1)
        after = second.status(run)
        assert after["state"] == "paused"
        assert after["tasks_sent"] == before["tasks_sent"]
        assert after["schedulers"] == before["schedulers"]
        assert hybrid("run", "resume", "--data-dir", str(folder)).returncode == 0
        second.wait_for(run, lambda status: status["tasks_processed"] > before["tasks_sent"])
        stopped = hybrid("run", "stop", run, "--json", "--data-dir", str(folder))
        assert json.loads(stopped.stdout)["state"] == "stopped"
        again = hybrid("run", "resume", run, "--data-dir", str(folder))
        assert again.returncode == 1
        assert "stopped" in again.stderr
    finally:
        assert second.stop() == 0


def test_status_run_list_and_sql_show_a_running_arena(arena: ArenaProcess) -> None:
    run = arena.start_run(tasks=500, pace="max", name="look at me")
    arena.complete(run)
    where = ("--data-dir", str(arena.folder))

    status = hybrid("status", run, *where)
    assert status.returncode == 0
    assert "oracle" in status.stdout
    assert run in status.stdout
    listed = json.loads(hybrid("run", "list", "--json", *where).stdout)
    assert "look at me" in [entry["name"] for entry in listed]
    table = hybrid("sql", "SELECT 1 + 1 AS two", *where)
    assert table.returncode == 0
    assert "two" in table.stdout
    csv = hybrid("sql", "SELECT 1 AS a, 2 AS b", "--format", "CSVWithNames", *where)
    assert csv.stdout == '"a","b"\n1,2\n'
    wrong = hybrid("sql", "SELECT nonsense", *where)
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "nonsense" in wrong.stderr
    forbidden = hybrid("sql", "DROP TABLE tasks", *where)
    assert forbidden.returncode == 1
    unknown = hybrid("status", "no-such-run", *where)
    assert (unknown.returncode, unknown.stdout) == (1, "")


def test_tail_prints_messages_readably(arena: ArenaProcess) -> None:
    run = arena.start_run(pace=100, seed=1)
    where = ("--data-dir", str(arena.folder))
    seen = hybrid("tail", f"results.{run}.greedy", "--count", "2", "--json", *where)
    messages = [json.loads(line) for line in seen.stdout.splitlines()]
    assert [message["scheduler"] for message in messages] == ["greedy", "greedy"]
    assert messages[0]["rows"][0]["gpu_fraction"] == messages[0]["rows"][0]["compute_intensity"]
    human = hybrid("tail", f"tasks.{run}", "--count", "1", *where)
    assert f"tasks.{run}" in human.stdout
    assert "compute_intensity" in human.stdout
    assert hybrid("run", "stop", run, *where).returncode == 0


def test_submitted_tasks_get_a_result_from_every_scheduler(arena: ArenaProcess) -> None:
    run = arena.start_run(pace=50, seed=2)
    task = {"size": 960, "compute_intensity": 0.75, "memory_required": 81}
    answer = arena.http.post("/api/tasks", json={"run": run, "tasks": [task, task]})
    assert answer.status_code == 202, answer.text
    first, second = answer.json()["task_ids"]
    arena.wait_for(run, lambda status: status["tasks_processed"] > second)
    rows = arena.sql(
        f"SELECT scheduler, task_id, time FROM scheduler_results FINAL WHERE run = '{run}' "
        f"AND task_id IN ({first}, {second})"
    )
    assert {(row["scheduler"], row["task_id"]) for row in rows} == {
        (name, task_id) for name in RULES for task_id in (first, second)
    }
    # T = 0.96 ** 1.5 / 1.25; all of it on the CPU takes just that.
    cpu = [row["time"] for row in rows if row["scheduler"] == "cpu_only"]
    assert cpu == pytest.approx([0.96**1.5 / 1.25] * 2)
    arena.http.post("/api/simulation/stop", params={"run": run})


def test_utilisation_of_the_devices_adds_up(arena: ArenaProcess) -> None:
    run = arena.start_run(tasks=4000, pace="max", seed=4)
    arena.complete(run)
    busy = arena.sql(
        "SELECT scheduler, sum(cpu_time) AS cpu, sum(gpu_time) AS gpu "
        f"FROM scheduler_results FINAL WHERE run = '{run}' GROUP BY scheduler"
    )
    standings = arena.http.get(f"/api/runs/{run}").json()["schedulers"]
    for row in busy:
        standing = standings[row["scheduler"]]
        *gpus, cpu = standing["busy"]
        assert cpu == pytest.approx(row["cpu"])
        assert sum(gpus) == pytest.approx(row["gpu"])
        assert max(standing["busy"]) <= standing["makespan"]


def test_several_runs_at_once_do_not_mix(arena: ArenaProcess) -> None:
    runs = [arena.start_run(tasks=3000, pace="max", seed=seed) for seed in (21, 22, 21)]
    prints = []
    for run in runs:
        arena.complete(run)
        prints.append(arena.fingerprints(run))
    assert prints[0] == prints[2]
    assert prints[0] != prints[1]
    assert all(row["results"] == 3000 for rows in prints for row in rows)


def test_a_port_in_use_is_a_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        failed = hybrid("up", "--port", port, "--data-dir", str(tmp_path / "data"))
    assert failed.returncode == 1
    assert f"port {port} for gateway" in failed.stderr
    assert "--auto-ports" in failed.stderr


def test_a_second_arena_in_the_same_folder_is_a_clear_error(arena: ArenaProcess) -> None:
    failed = hybrid("up", "--auto-ports", "--data-dir", str(arena.folder))
    assert failed.returncode == 1
    assert "runs in" in failed.stderr


def test_a_broken_spec_names_its_fields_before_anything_starts(tmp_path: Path) -> None:
    spec = tmp_path / "broken.yaml"
    spec.write_text("tasks: 10\nworkload: {arival_rate: 3}\nphysics: {split: sideways}\n")
    failed = hybrid("up", "--spec", str(spec), "--data-dir", str(tmp_path / "data"))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "workload.arival_rate: unknown key (did you mean arrival_rate?)" in failed.stderr
    assert "physics.split: Input should be 'serial' or 'overlapped'" in failed.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "--exit"], "--exit needs a run that ends"),
        (["up", "--pace", "fast"], "pace: must be a number of tasks per second above 0, or max"),
        (["up", "--scale", "greedy=none"], "expected NAME=NUMBER"),
        (["up", "--scale", "nobody=2"], "no nobody; known:"),
        (["run", "start", "--preset", "nope"], "unknown preset 'nope'; allowed: hpc"),
        (["status", "--url", "http://127.0.0.1:9"], "no arena answers at http://127.0.0.1:9"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_1(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    failed = hybrid(*arguments, cwd=tmp_path)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert message in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr


def test_health_names_every_service(arena: ArenaProcess) -> None:
    def healthy() -> Any:  # a busy service may answer the roll call too late
        answer = httpx.get(f"{arena.announced['url']}/api/health")
        return answer.json() if answer.status_code == 200 else None

    health = until(healthy)
    present = {(report["service"], report["scheduler"]) for report in health["services"]}
    assert present == {("scheduler", name) for name in BUILT_IN} | {
        (name, "")
        for name in ("gateway", "generator", "simulator", "executor", "recorder", "trainer")
    }
    for report in health["services"]:
        base = f"http://127.0.0.1:{report['http_port']}"
        assert httpx.get(f"{base}/health").status_code == 200
        assert "process_resident_memory_bytes" in httpx.get(f"{base}/metrics").text
