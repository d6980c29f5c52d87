"""The policy that decides each run.

The file of a plug-in is loaded again when it has changed since the last run started. A run that has
started keeps the code that it has: its decisions must not change under it.
"""

from __future__ import annotations

from services.scheduler import policy as policies
from services.scheduler.learned_policy import LearnedClusterPolicy
from services.scheduler.policy import AnyPolicy, Policy, PolicyError
from shared.runtime.bounded_dict import BoundedDict
from shared.runtime.plugins import fingerprint

# With more runs, the policy of the one that was decided longest ago is dropped.
KEPT_RUNS = 1024


class LoadedPolicies:
    def __init__(self, reference: str) -> None:
        """Raise a PolicyError if the policy cannot be loaded."""
        self._reference = reference
        self._fingerprint = fingerprint(reference)
        self.newest = policies.load(reference)
        self._by_run: BoundedDict[str, AnyPolicy] = BoundedDict(KEPT_RUNS)

    @property
    def name(self) -> str:
        return self.newest.name

    def of(self, run: str) -> AnyPolicy:
        """The policy of a run; a new run gets it as its file is now. Raise a PolicyError if that
        cannot be loaded."""
        policy = self._by_run.get(run)
        if policy is None:
            if (now := fingerprint(self._reference)) != self._fingerprint:
                self._load(now)
            policy = self.newest
        self._by_run[run] = policy
        return policy

    def load_again(self, run: str) -> None:
        """Let the run continue with the file as it is now: its author may have fixed it."""
        self._load(fingerprint(self._reference))
        self._by_run[run] = self.newest

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
