"""Whether an arena has logged one of its secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def files_with_secrets(folder: Path) -> list[str]:
    """Logs of an arena's processes, and what it printed, that have one of its secrets in them."""
    secrets = list(_values(json.loads((folder / "secrets.json").read_text())))
    assert len(secrets) > 5
    logs = [*(folder / "logs").iterdir(), *folder.parent.glob(f"{folder.name}.stderr")]
    texts = {file.name: file.read_text(errors="replace") for file in logs}
    assert any(texts.values()), f"nothing is logged in {folder}"
    return sorted(name for name, text in texts.items() if any(each in text for each in secrets))


def _values(secret: Any) -> Iterator[str]:
    if isinstance(secret, dict):
        for each in secret.values():
            yield from _values(each)
    else:
        yield str(secret)
