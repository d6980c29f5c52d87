"""The policy that decides each run.

The file of a plug-in is loaded again when it has changed since the last run started. A run that has
started keeps the code that it has: its decisions must not change under it.
"""

from __future__ import annotations

from collections import OrderedDict

from services.scheduler import policy as policies
from services.scheduler.learned_policy import LearnedClusterPolicy
from services.scheduler.policy import AnyPolicy, Policy, PolicyError
from shared.runtime.plugins import fingerprint

# With more runs, the one that was decided longest ago is forgotten.
KEPT_RUNS = 1024


class LoadedPolicies:
    def __init__(self, reference: str) -> None:
        """Raise a PolicyError if the policy cannot be loaded."""
        self._reference = reference
        self._fingerprint = fingerprint(reference)
        self.newest = policies.load(reference)
        self._of_runs: OrderedDict[str, AnyPolicy] = OrderedDict()

    @property
    def name(self) -> str:
        return self.newest.name

    def of(self, run: str) -> AnyPolicy:
        """The policy of a run; of a new one, as its file is now. Raise a PolicyError if that
        cannot be loaded."""
        if run not in self._of_runs:
            if (now := fingerprint(self._reference)) != self._fingerprint:
                self._load(now)
            self._of_runs[run] = self.newest
        self._of_runs.move_to_end(run)
        if len(self._of_runs) > KEPT_RUNS:
            self._of_runs.popitem(last=False)
        return self._of_runs[run]

    def load_again(self, run: str) -> None:
        """Let the run continue with the file as it is now: its author may have fixed it."""
        self._load(fingerprint(self._reference))
        self._of_runs[run] = self.newest

    def _load(self, now: bytes) -> None:
        policy = policies.load(self._reference)
        if _kind(policy) != _kind(self.newest):
            raise PolicyError(
                f"{self._reference}: its name or its kind has changed: restart its worker"
            )
        self.newest, self._fingerprint = policy, now


def _kind(policy: AnyPolicy) -> tuple[str, bool, str]:
    """What a running worker cannot change."""
    learner = policy.learner if isinstance(policy, LearnedClusterPolicy) else ""
    return policy.name, isinstance(policy, Policy), learner
