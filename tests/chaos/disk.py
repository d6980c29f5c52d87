"""A small disk of its own for a folder, so that it can be full without harm to anything else."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

SIZE_MB = 4096  # sparse: takes what is written to it


class DiskUnavailable(Exception):
    """This machine does not let us mount one; says why."""


class Disk:
    def __init__(self, folder: Path) -> None:
        if os.geteuid() != 0:
            raise DiskUnavailable("mounting needs root")
        if not shutil.which("mkfs.ext4"):
            raise DiskUnavailable("there is no mkfs.ext4")
        self._image = folder.with_name(f"{folder.name}.img")
        self._folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(SIZE_MB << 20)
        try:
            _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
            _run("mount", "-o", "loop", str(self._image), str(folder))
        except DiskUnavailable:
            self._image.unlink()
            raise
        shutil.rmtree(folder / "lost+found")

    def fill(self) -> None:
        """Use up every free block."""
        with self._ballast.open("wb") as ballast:
            taken, step = 0, 1 << 30
            while step >= 4096:
                try:
                    os.posix_fallocate(ballast.fileno(), taken, step)
                    taken += step
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    step //= 2

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        _run("umount", "-l", str(self._folder))
        self._image.unlink()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise DiskUnavailable(f"{command[0]}: {done.stderr.strip()}")
