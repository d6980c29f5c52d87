"""The file in an arena's folder with the formats that the program writes there.

An older program must not touch the folder of a newer one, and refuses before it starts anything.
"""

from __future__ import annotations

import json
from pathlib import Path

from deploy.local.arena import StartError
from shared.messages.formats import FORMATS
from shared.store.schema import MIGRATIONS

NAME = "version.json"


def format_versions() -> dict[str, int]:
    """The versions of the tables and messages that this program reads and writes."""
    return {"tables": MIGRATIONS[-1].version} | {str(kind): FORMATS[kind] for kind in FORMATS}


def check_version(folder: Path) -> None:
    """Refuse the folder of a newer version; write our versions into any other."""
    ours = format_versions()
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
    """Empty for folders of the first version, which wrote no file."""
    if not path.exists():
        return {}
    try:
        return {str(name): int(number) for name, number in json.loads(path.read_text()).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise StartError(
            f"{path} cannot be read: {error}; remove it if it is not an arena's"
        ) from None
