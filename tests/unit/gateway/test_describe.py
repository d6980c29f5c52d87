"""The description of the interface, from which the dashboard's types are generated."""

from __future__ import annotations

import json
from pathlib import Path

from services.gateway import describe
from services.gateway.http.row_models import LEGACY_NAMES


def test_it_is_written_without_a_connection(tmp_path: Path) -> None:
    describe.write(tmp_path / "new")
    http = json.loads((tmp_path / "new" / "openapi.json").read_text())
    row = http["components"]["schemas"]["ResultRow"]
    assert {*LEGACY_NAMES, *LEGACY_NAMES.values(), "task_id", "wait"} <= set(row["required"])
    assert row["properties"]["actual_time"]["deprecated"]
    websocket = json.loads((tmp_path / "new" / "websocket.schema.json").read_text())
    references = [part["$ref"] for part in websocket["$defs"]["ServerMessage"]["anyOf"]]
    assert "#/$defs/Snapshot" in references
    assert {ref.rpartition("/")[2] for ref in references} <= set(websocket["$defs"])
