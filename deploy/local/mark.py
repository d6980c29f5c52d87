"""The mark in an arena's folder that says which version of the program it belongs to.

An older program must not touch what a newer one wrote there, and says so before it starts anything.
"""

from __future__ import annotations

import json
from pathlib import Path

from deploy.local.arena import StartError
from shared.formats import FORMATS
from shared.store.schema import MIGRATIONS

NAME = "version.json"


def known() -> dict[str, int]:
    """What this version of the program reads and writes."""
    return {"tables": MIGRATIONS[-1].version} | {str(kind): FORMATS[kind] for kind in FORMATS}


def check(folder: Path) -> None:
    """Refuse the folder of a newer version; mark any other as ours."""
    ours = known()
    newer = [
        f"{name} {number}, this program knows {ours[name]}"
        for name, number in _read(folder / NAME).items()
        if name in ours and number > ours[name]
    ]
    if newer:
        raise StartError(
            f"{folder} belongs to a newer version of this program ({'; '.join(newer)}): "
            "upgrade the program, or choose another folder with --data-dir"
        )
    (folder / NAME).write_text(json.dumps(ours) + "\n")


def _read(path: Path) -> dict[str, int]:
    """Folders of the first version have none."""
    if not path.exists():
        return {}
    try:
        return {str(name): int(number) for name, number in json.loads(path.read_text()).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise StartError(f"{path} cannot be read: {error}; remove it if it is not ours") from None
