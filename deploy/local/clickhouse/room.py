"""A disk without room: nothing is merged then, and what a merge has spoilt does not stay.

An insert reserves its room and is refused without it. So does a merge; but when others fill the
disk meanwhile, this engine (chdb 26.9) takes the unfinished part for a good one. It cannot be read,
and what it was made of is deleted eight minutes later. A start of the engine sets such a part aside
and takes its sources again, so the server ends, to be started anew by whoever supervises it.
"""

import logging
import os
import shutil
import threading
import time
from pathlib import Path

from .engine import Engine

log = logging.getLogger("clickhouse")

LOW_BYTES, ENOUGH_BYTES = 256 << 20, 512 << 20
_LOOK_SECONDS = 0.5
# Parts that may have been written while there was no room.
_RECENT = """
    SELECT database, table, name FROM system.parts
    WHERE active AND modification_time > now() - 60 AND database != 'system'
"""


class Room:
    """Looks at the disk now and then."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self._engine = engine
        self._path = path
        self._short = False
        self._checked: set[str] = set()

    def watch(self) -> None:
        threading.Thread(target=self._watch, name="room", daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            try:
                self._look(shutil.disk_usage(self._path).free)
            except (OSError, RuntimeError) as error:
                log.warning("cannot see to the disk: %s", error)

    def _look(self, free: int) -> None:
        if not self._short and free < LOW_BYTES:
            log.warning(
                "%d MB are free for %s: nothing is merged until it is %d",
                free >> 20,
                self._path,
                ENOUGH_BYTES >> 20,
            )
            self._engine.ask("SYSTEM STOP MERGES")
            self._short = True
        elif self._short and free >= ENOUGH_BYTES:
            log.warning("%d MB are free: merging again", free >> 20)
            self._engine.ask("SYSTEM START MERGES")
            self._short = False
            self._checked.clear()
        # A merge that was at its end when it was told to stop comes a little later.
        if self._short and (spoilt := self._spoilt()):
            log.error("without room %s was not written whole: starting anew without it", spoilt)
            # At once: closing would wait for queries, and those that write would not get far.
            os._exit(1)

    def _spoilt(self) -> str | None:
        """A recent part that is not what it says; each is looked at once."""
        for line in self._engine.ask(_RECENT).splitlines():
            if line in self._checked:
                continue
            database, table, part = line.split("\t")
            check = f"CHECK TABLE `{database}`.`{table}` PART '{part}'"
            if self._engine.ask(f"{check} SETTINGS check_query_single_value_result = 1") == "0":
                return part
            self._checked.add(line)
        return None
