"""Learning in step with the stream: which version of a model decides a task follows from the task.

The stream is cut into segments of `learning.lockstep_tasks` tasks. Segment s is decided by the
version that knows all results before segment s - 1, so a version is made while the segment before
its own is decided. The first two segments are decided by the pre-trained model, or by none.

Batches of a run in lockstep end where a segment ends, except that tasks which arrive together stay
together: a batch belongs to the segment of its first task.
"""

from __future__ import annotations

from shared.domain.spec import RunSpec


def deciding_version(first_task: int, spec: RunSpec) -> int:
    """The version that decides a batch; 0: none."""
    segment = first_task // spec.learning.lockstep_tasks
    return max(segment, 1) if spec.learning.pretrain_tasks else max(segment - 1, 0)


def first_decided(version: int, spec: RunSpec) -> int:
    """The first task that this version decides, after the first two segments."""
    segment = version if spec.learning.pretrain_tasks else version + 1
    return segment * spec.learning.lockstep_tasks


def learned_before(version: int, spec: RunSpec) -> int:
    """The version knows the results of all tasks before this one."""
    return first_decided(version, spec) - spec.learning.lockstep_tasks


def left_of_segment(next_task: int, spec: RunSpec) -> int:
    """How many more tasks the segment has."""
    return spec.learning.lockstep_tasks - next_task % spec.learning.lockstep_tasks
