from __future__ import annotations

import io
import json
import sys

import pytest

from shared.runtime import logs
from shared.runtime.settings import Settings


def test_a_log_outlives_the_stderr_that_it_was_set_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", first)
    logs.set_up(Settings(log_format="json"))
    log = logs.logger()
    log.info("one")
    assert json.loads(first.getvalue())["event"] == "one"
    first.close()
    monkeypatch.setattr(sys, "stderr", second)
    log.warning("two")
    assert json.loads(second.getvalue())["event"] == "two"


def test_a_line_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log may be turned over between two writes."""
    written: list[str] = []

    class Unbuffered(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    monkeypatch.setattr(sys, "stderr", Unbuffered())
    logs.set_up(Settings(log_format="json"))
    logs.logger().info("one")
    (line,) = written
    assert line.endswith("}\n")
