"""Writes the description of the interface: `python -m services.gateway.describe DIR`.

`openapi.json` describes HTTP, `websocket.schema.json` the WebSocket. Connects to nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from services.gateway import app
from services.gateway.live.schemas import json_schema
from shared.runtime.settings import Settings


def write(folder: Path) -> None:
    _, gateway = app.make(Settings())
    documents = {"openapi.json": gateway.openapi(), "websocket.schema.json": json_schema()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m services.gateway.describe DIR")
    write(Path(sys.argv[1]))
