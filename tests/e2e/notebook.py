"""Execute the notebooks against an arena; as a command, renew their stored outputs."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from deploy.local.arena import Arena, find
from tests.e2e.arena import ArenaProcess, hybrid
from tests.waiting import PATIENCE

NOTEBOOK = Path("deploy/notebooks/analysis.ipynb")
CLIENT_NOTEBOOKS = tuple(
    Path(f"clients/notebooks/{name}.ipynb")
    for name in ("gym", "client", "advice", "whatif", "adversary")
)


def running(arena: ArenaProcess) -> Arena:
    found = find(arena.folder)
    assert found is not None, f"no arena in {arena.folder}"
    return found


def environment(arena: ArenaProcess, run: str = "") -> dict[str, str]:
    """Tells the notebook where the arena is; without the caller's own HYBRID_ settings."""
    found = running(arena)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HYBRID_")}
    return kept | {
        "HYBRID_CLICKHOUSE_URL": f"http://127.0.0.1:{found.ports.clickhouse}",
        "HYBRID_CLICKHOUSE_PASSWORD": found.secrets.analyst,
        "HYBRID_RUN": run,
        "HYBRID_URL": found.url,
    }


def executed(env: dict[str, str], folder: Path, stored: Path = NOTEBOOK) -> Any:
    """A stored notebook, run from its first cell to its last by a kernel in this folder."""
    notebook = nbformat.read(stored, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=PATIENCE,
        startup_timeout=PATIENCE,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute(env=env)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="10000")
    # As fast as the learners can follow on a small machine.
    parser.add_argument("--pace", default="200")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arena = ArenaProcess(Path(folder) / "data", "--idle")
        try:
            done = hybrid(
                "run", "start", "--tasks", given.tasks, "--pace", given.pace, "--wait",
                "--data-dir", str(arena.folder), timeout=3600,
            )  # fmt: skip
            print(done.stdout or done.stderr)
            env = environment(arena)
            renew(NOTEBOOK, executed(env, Path(folder)))
            for each in CLIENT_NOTEBOOKS:
                renew(each, executed(env, Path(folder), each))
        finally:
            arena.stop()


def renew(path: Path, notebook: Any) -> None:
    # The kernel's exact version says nothing of the results.
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)
    print(f"wrote {path}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
