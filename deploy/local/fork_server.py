"""Starts services as forks of one process that has imported what they share.

A fork takes milliseconds and shares the memory of its imports; an interpreter of its own would take
a second of CPU and 70 MB for each of twenty services. Requests and replies are lines of JSON on a
socket that the supervisor opens: `python -m deploy.local.fork_server DESCRIPTOR`.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

from setproctitle import setproctitle

PR_SET_PDEATHSIG = 1

# What the services import, but for the trainer's torch and scikit-learn.
PRELOADED = (
    "services.generator.app",
    "services.scheduler.app",
    "services.simulator.app",
    "services.executor.app",
    "services.recorder.app",
    "services.gateway.app",
    # Which chdb requires. Where it is installed, pyarrow imports it with the first array that it
    # converts: two tenths of a second and 20 MB for each service, just when the first tasks arrive.
    "pandas",
    # Which FastStream's first message imports.
    "anyio._backends._asyncio",
)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    # Before the environment changes: titles are written over it.
    setproctitle("deploy.local.fork_server")
    for module in PRELOADED:
        importlib.import_module(module)
    # The garbage collector writes to every object that it looks at, and so would copy its page.
    gc.collect()
    gc.freeze()
    serve(control)


def serve(control: socket.socket) -> None:
    """Fork on request and report which children have ended, until the supervisor is gone."""
    woken, wake = socket.socketpair()
    woken.setblocking(False)
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    ready = selectors.DefaultSelector()
    ready.register(control, selectors.EVENT_READ)
    ready.register(woken, selectors.EVENT_READ)
    requests = b""
    while True:
        for key, _ in ready.select():
            if key.fileobj is woken:
                woken.recv(4096)
                report_ended(control)
                continue
            received = control.recv(65536)
            if not received:
                return  # and the children with it
            *lines, requests = (requests + received).split(b"\n")
            for line in lines:
                request = json.loads(line)
                pid = os.fork()
                if pid == 0:
                    for descriptor in (control, woken, wake):
                        descriptor.close()
                    become(request)
                reply(control, {"request": request["request"], "pid": pid})


def report_ended(control: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        reply(control, {"pid": pid, "code": os.waitstatus_to_exitcode(status)})


def reply(control: socket.socket, message: dict[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


def become(request: dict[str, Any]) -> NoReturn:
    """Run the requested service, in a child."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Ctrl-C goes to the supervisor alone, which stops the services in order.
        os.setsid()
        die_with_parent()
        output = os.open(request["log_file"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.environ.clear()
        os.environ.update(request["environment"])
        setproctitle(request["title"])
        sys.argv = [request["module"]]
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def die_with_parent() -> None:
    """The children of a supervisor that is killed must end too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    main()
