"""An arena in a notebook: its runs, with pandas DataFrames.

    from hybrid_client import Arena
    arena = Arena()                                    # or Arena("http://host:8000")
    run = arena.start(tasks=2000, pace="max").wait()   # shows its progress
    run.race()                                         # one row for each scheduler
    run.results("eft")                                 # one row for each task
    run.fork(1000, {"cluster.gpus": 5}).wait().compare()  # what if?
    arena.advise(preset="hpc", load=0.8)               # which scheduler to use

Every call is a request to the gateway, whose interface is described at `/docs` of the arena.
"""

from hybrid_client.advice import Advice
from hybrid_client.arena import AdviceFailed, Arena, Run, RunFailed
from shared.errors import Unavailable
from shared.runtime.gateway_client import Refused

__all__ = ["Advice", "AdviceFailed", "Arena", "Refused", "Run", "RunFailed", "Unavailable"]
