"""Workflows of known shapes: for each task of a workflow, the tasks of it that it waits for.

- `pipeline`: a chain.
- `fork_join`: one task, then all others at once, then one that waits for all of them.
- `montage`: like the astronomy workflow of that name (Berriman et al. 2004). Images are projected;
  every two neighbours are compared; one task collects the differences and one fits a model to them;
  each projection is corrected by the model; one task adds them up, and up to two more follow it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, get_args

Shape = Literal["pipeline", "fork_join", "montage"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
FEWEST_TASKS = 5  # of a workflow


@lru_cache
def workflow_parents(shape: Shape, tasks: int) -> list[list[int]]:
    """By position in a workflow of so many tasks; parents come before their children."""
    match shape:
        case "pipeline":
            return [[], *([position] for position in range(tasks - 1))]
        case "fork_join":
            parallel = range(1, tasks - 1)
            return [[], *([0] for _ in parallel), list(parallel)]
        case "montage":
            return _montage(tasks)


def _montage(tasks: int) -> list[list[int]]:
    images = (tasks - 2) // 3
    compared = [[image, image + 1] for image in range(images - 1)]
    collect = images + len(compared)
    model = collect + 1
    corrected = [[image, model] for image in range(images)]
    add = model + 1 + images
    return [
        *([] for _ in range(images)),
        *compared,
        list(range(images, collect)) or [0],
        [collect],
        *corrected,
        list(range(model + 1, add)),
        *([position] for position in range(add, tasks - 1)),
    ]
