"""Stops merges while the disk is nearly full, and restarts the server if one wrote a broken part.

An insert reserves its space and is refused without it. So does a merge; but if the disk fills up
during the merge, this engine (chdb 26.9) treats the unfinished part as a good one. It cannot be
read, and its source parts are deleted eight minutes later. On start the engine detaches such a part
and uses its sources again, so the server exits, and its supervisor restarts it.
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
_CHECK_SECONDS = 0.5
# Parts that may have been written while the disk was full.
_RECENT_PARTS = """
    SELECT database, table, name FROM system.parts
    WHERE active AND modification_time > now() - 60 AND database != 'system'
"""


class DiskSpaceWatch:
    """Checks the free space in a thread."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self._engine = engine
        self._path = path
        self._low = False
        self._checked: set[str] = set()

    def start(self) -> None:
        threading.Thread(target=self._watch, name="disk space", daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(_CHECK_SECONDS)
            try:
                self._check(shutil.disk_usage(self._path).free)
            except (OSError, RuntimeError) as error:
                log.warning("cannot check the disk space: %s", error)

    def _check(self, free: int) -> None:
        if not self._low and free < LOW_BYTES:
            log.warning(
                "%d MB are free for %s: merges are stopped until %d MB are free",
                free >> 20,
                self._path,
                ENOUGH_BYTES >> 20,
            )
            self._engine.run_internal("SYSTEM STOP MERGES")
            self._low = True
        elif self._low and free >= ENOUGH_BYTES:
            log.warning("%d MB are free: merges are started again", free >> 20)
            self._engine.run_internal("SYSTEM START MERGES")
            self._low = False
            self._checked.clear()
        # A merge that had nearly finished when merges were stopped still writes its part.
        if self._low and (part := self._broken_part()):
            log.error("part %s is broken because the disk was full: restarting without it", part)
            # At once: closing would wait for queries, and inserts cannot finish.
            os._exit(1)

    def _broken_part(self) -> str | None:
        """Each recent part is checked once."""
        for line in self._engine.run_internal(_RECENT_PARTS).splitlines():
            if line in self._checked:
                continue
            database, table, part = line.split("\t")
            check = f"CHECK TABLE `{database}`.`{table}` PART '{part}'"
            settings = "SETTINGS check_query_single_value_result = 1"
            if self._engine.run_internal(f"{check} {settings}") == "0":
                return part
            self._checked.add(line)
        return None
