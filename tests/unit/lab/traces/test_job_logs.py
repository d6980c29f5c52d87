"""Gavel's trace, Philly's and Helios' job logs, and dates, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.lab.traces.mapping import parse_mapping
from shared.domain.spec import RunSpec
from shared.domain.times import seconds
from tests.unit.lab.traces.reading import read, written

GAVEL = (
    "A3C\tpython a.py\t--max-steps\t0\t500\t10.000000\t1\n"
    "LM (batch size 5)\tpython b.py\t--steps\t1\t900\t16.5\t2\n"
    "LM (batch size 5)\tpython b.py\t/work\t--steps\t1\t70\t4\t1\t-1.0\t20\n"
)


def gavel_spec() -> RunSpec:
    curves = [
        {"kind": "A3C x1", "type": "k80", "sizes": [1], "seconds": [0.5]},
        {"kind": "A3C x1", "type": "v100", "sizes": [1], "seconds": [0.25]},
        {"kind": "LM (batch size 5) x2", "type": "v100", "sizes": [1], "seconds": [0.1]},
    ]
    devices = [{"type": "k80", "count": 4}, {"type": "v100", "count": 4}]
    return RunSpec.parse({"cluster": {"devices": devices}, "physics": {"measured": curves}})


def test_both_kinds_of_gavels_lines(tmp_path: Path) -> None:
    result = read(written(tmp_path, "jobs.trace", GAVEL))
    assert result.trace.format == "gavel"
    assert result.tasks.size.tolist() == [500, 900, 70]
    assert result.tasks.kind == ["A3C x1", "LM (batch size 5) x2", "LM (batch size 5) x4"]
    assert result.tasks.width is not None
    assert result.tasks.width.tolist() == [1, 2, 4]
    assert result.tasks.arrival_time.tolist() == [0, 6.5, 10]
    assert result.messages == []


def test_gavels_jobs_take_what_was_measured(tmp_path: Path) -> None:
    spec = gavel_spec()
    result = read(written(tmp_path, "jobs.trace", GAVEL), spec=spec)
    times = seconds(result.tasks, spec)
    assert times[0].tolist() == pytest.approx([250, 125])
    assert times[1, 1] == pytest.approx(90)
    assert result.messages == [
        "line 3: skipped: no device type of the platform can run it: LM (batch size 5) x4"
    ]


def test_broken_lines_of_gavel_are_named(tmp_path: Path) -> None:
    text = GAVEL + "A3C\tpython\n" + "A3C\tx\ty\t0\tmany\t10\t1\n"
    result = read(written(tmp_path, "jobs.trace", text))
    assert result.messages == [
        "line 4: skipped: neither 7 nor 10 fields: 2",
        "line 5: skipped: not a number: total_steps 'many'",
    ]


def attempt(start: str, end: str | None, *gpus: int) -> dict[str, object]:
    detail = [{"ip": f"m{n}", "gpus": [f"gpu{k}" for k in range(n)]} for n in gpus]
    return {"start_time": start, "end_time": end, "detail": detail}


def test_phillys_jobs_are_sorted_and_their_attempts_added_up(tmp_path: Path) -> None:
    jobs = [
        {
            "jobid": "late",
            "submitted_time": "2017-10-07 02:00:00",
            "attempts": [
                attempt("2017-10-07 02:00:10", "2017-10-07 02:00:14", 8),
                attempt("2017-10-07 02:01:00", "2017-10-07 02:01:04", 8, 4),
                attempt("2017-10-07 02:03:00", None, 8),
            ],
        },
        {"jobid": "none", "submitted_time": "2017-10-07 01:30:00", "attempts": []},
        {
            "jobid": "early",
            "submitted_time": "2017-10-07 01:00:00",
            "attempts": [attempt("2017-10-07 01:00:10", "2017-10-07 01:00:37", 1)],
        },
        {"jobid": "broken", "submitted_time": "yesterday", "attempts": []},
    ]
    result = read(written(tmp_path, "cluster_job_log", json.dumps(jobs)))
    assert result.trace.format == "philly"
    assert result.tasks.arrival_time.tolist() == [0, 3600]
    assert result.tasks.width is not None
    assert result.tasks.width.tolist() == [1, 12]
    # 27 s and 8 s on a GPU at intensity 0.5, which is 2.5 times a CPU.
    assert result.tasks.size.tolist() == pytest.approx(
        [1000 * 67.5 ** (2 / 3), 1000 * 20 ** (2 / 3)]
    )
    assert result.report.skipped == {
        "never ran: no attempt has a start and an end": 1,
        "not a job": 1,
    }


HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,u1,v1,4,16,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:41:09,8,0
2,u2,v1,0,8,1,FAILED,2020-06-09 18:42:01,2020-06-09 18:42:01,2020-06-09 18:42:28,27,0
3,u2,v1,0,8,1,FAILED,today,2020-06-09 18:42:01,2020-06-09 18:42:28,27,0
"""


def test_helios_jobs_arrive_by_their_dates(tmp_path: Path) -> None:
    result = read(written(tmp_path, "cluster_log.csv", HELIOS))
    assert result.trace.format == "helios"
    assert result.tasks.arrival_time.tolist() == [0, 60]
    assert result.tasks.width is not None
    assert result.tasks.width.tolist() == [4, 1]
    # 8 s on GPUs, 27 s on a CPU.
    assert result.tasks.size.tolist() == pytest.approx([1000 * 20 ** (2 / 3), 9000])
    assert result.messages == ["line 4: skipped: not a date: submit_time 'today'"]
    assert result.trace.recorded_on_cpu == 1


@pytest.mark.parametrize(("scale", "cpus"), [(1, 8), (0.125, 1), (0.05, 1), (0.13, 2)])
def test_a_mapping_says_how_many_cpus_a_job_without_a_gpu_takes(
    tmp_path: Path, scale: float, cpus: int
) -> None:
    # 8 cores, on CPUs that are a core, or a socket of 8, 20 or a little less than 8.
    mapping = parse_mapping({"helios": {"cpu_width": {"column": "cpu_num", "scale": scale}}})
    result = read(written(tmp_path, "cluster_log.csv", HELIOS), mapping=mapping)
    assert result.tasks.width is not None
    assert result.tasks.width.tolist() == [4, cpus]


def test_a_job_needs_at_least_one_cpu(tmp_path: Path) -> None:
    mapping = parse_mapping({"helios": {"cpu_width": {"otherwise": 0}}})
    result = read(written(tmp_path, "cluster_log.csv", HELIOS), mapping=mapping)
    assert result.tasks.width is not None
    assert result.tasks.width.tolist() == [4]
    assert "line 3: skipped: cpu_width is not within 1..100000: 0" in result.messages


@pytest.mark.parametrize(
    ("format", "dates"),
    [
        ("iso", ("2024-02-28T23:59:30Z", "2024-02-29T01:00:00+01:00")),
        ("%d.%m.%Y %H:%M:%S", ("28.02.2024 23:59:30", "29.02.2024 00:00:00")),
    ],
)
def test_a_mapping_reads_dates(tmp_path: Path, format: str, dates: tuple[str, str]) -> None:
    rules = {
        "seconds": {"column": "end", "minus": "begin", "date": format},
        "intensity": {"otherwise": 0.5},
        "memory": {"otherwise": 0},
        "arrival": {"column": "begin", "date": format},
        "arrivals_from_first": True,
    }
    begin, end = dates
    path = written(tmp_path, "t.csv", f"begin,end\n{begin},{end}\n{end},{begin}\n,{end}\n")
    result = read(path, mapping=parse_mapping({"csv": rules}))
    assert result.tasks.size.tolist() == pytest.approx([1000 * 30 ** (2 / 3)])
    assert result.messages == [
        "line 3: skipped: run time is negative: -30",
        "line 4: skipped: missing value: end - begin",
    ]
