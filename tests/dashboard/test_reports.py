"""A report of the lab opens inside the dashboard, and can do nothing there."""

from __future__ import annotations

from pathlib import Path

from tests.dashboard.browser import Viewer

PAGE = """<!doctype html>
<title>Queues</title>
<style>h1 { color: rgb(1, 2, 3) }</style>
<h1 id="heading">Which scheduler breaks down first?</h1>
<p id="script">no script ran</p>
<script>document.getElementById("script").textContent = "a script ran"</script>
"""


def test_a_report_opens_in_the_dashboard(viewer: Viewer, run: str, reports: Path) -> None:
    folder = reports / "queues-1118"
    folder.mkdir(parents=True)
    (folder / "report.html").write_text(PAGE)
    viewer.open("history", run=run)
    viewer.widget("reports").get_by_role("link", name="Queues").click()
    viewer.page.wait_for_url("**view=report**")
    frame = viewer.page.frame_locator('[data-testid="report"]')
    heading = frame.locator("#heading")
    heading.get_by_text("breaks down first").wait_for()
    assert heading.evaluate("each => getComputedStyle(each).color") == "rgb(1, 2, 3)"
    assert frame.locator("#script").inner_text() == "no script ran"
    # The browser says that it blocked the script, which is the point, and that of `new_context`.
    viewer.errors = [error for error in viewer.errors if "sandboxed" not in error]
