"""Reports of the lab behind the gateway: listed, read, and kept in their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.arena import Arena
from tests.integration.gateway import assert_problem, serving

PAGE = "<!doctype html><title>Queues &amp; load</title><h1>Queues</h1>"


def write(folder: Path, name: str) -> Path:
    (folder / name).mkdir(parents=True)
    report = folder / name / "report.html"
    report.write_text(PAGE)
    return report


async def test_reports_are_listed_and_read(arena: Arena, tmp_path: Path) -> None:
    report = write(tmp_path / "experiments", "queues-1118")
    (tmp_path / "experiments" / "unfinished").mkdir()
    settings = arena.settings.model_copy(update={"reports_dir": tmp_path / "experiments"})
    async with serving(settings) as http:
        (listed,) = (await http.get("/api/reports")).json()
        assert listed == {
            "name": "queues-1118",
            "title": "Queues & load",
            "kind": "experiment",
            "written_at": pytest.approx(report.stat().st_mtime),
        }
        page = await http.get("/api/reports/queues-1118")
        assert page.text == PAGE
        assert page.headers["content-type"].startswith("text/html")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "sandbox" in policy
        assert "script-src" not in policy
        assert page.headers["x-frame-options"] == "SAMEORIGIN"
        assert (await http.get("/")).headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "name", ["unknown", "..", "%2e%2e", "..%2f..%2fsecret", "leads_out", "queues%00", "a" * 5000]
)
async def test_nothing_outside_of_the_folder_is_read(
    arena: Arena, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "experiments"
    write(folder, "queues")
    write(tmp_path, "secret")
    (tmp_path / "report.html").write_text("secret")
    (folder / "leads_out").symlink_to(tmp_path / "secret")
    settings = arena.settings.model_copy(update={"reports_dir": folder})
    async with serving(settings) as http:
        assert [row["name"] for row in (await http.get("/api/reports")).json()] == ["queues"]
        assert_problem(await http.get(f"/api/reports/{name}"), 404)


async def test_without_a_folder_there_are_no_reports(arena: Arena) -> None:
    async with serving(arena.settings) as http:
        assert (await http.get("/api/reports")).json() == []
        assert_problem(await http.get("/api/reports/queues"), 404)
