"""Which simulator serves which scheduler: agreed on without talking, from who is there."""

from __future__ import annotations

from hashlib import blake2b


def owner(scheduler: str, instances: list[str]) -> str:
    """Rendezvous hashing: every simulator works out the same owner, and when one comes or goes
    only its own schedulers move."""
    return max(instances, key=lambda instance: blake2b(f"{instance}/{scheduler}".encode()).digest())
