"""What `hybrid up --exit` prints of the learners."""

from __future__ import annotations

from services.cli.runs.summary import learned_lines


def test_versions_and_their_age_are_printed_for_learners_only() -> None:
    rows = {
        "eft": {"results": 10},
        "predictive": {"versions": [1, 2, 3], "staleness": 1234.5},
        "untaught": {"versions": [1], "staleness": None},
    }
    assert list(learned_lines({"schedulers": rows})) == [
        "predictive decided with versions 1 to 3, on average 1,234 tasks after what they knew",
        "untaught decided with versions 1 to 1",
    ]
