"""What every service process has: the bus, /health and /metrics, a graceful stop, a roll call.

A service's `app.py` creates one of these, adds its subscribers and background work, and calls
`run`. The order of a start: connect, wait for the streams, `prepare` hooks (consumers, state),
subscribers, background work. A stop goes in reverse order; handlers in progress finish first.
"""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from faststream.asgi import AsgiFastStream, AsgiResponse, get
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, make_asgi_app

from shared.bus import service_server
from shared.bus.client import Bus, Message
from shared.bus.publisher import TRANSIENT_ERRORS
from shared.bus.run_book import RunBook
from shared.bus.service_server import ServiceServer
from shared.errors import ArenaError
from shared.messages import subjects
from shared.messages.events import Event, ServiceReport
from shared.runtime import logs
from shared.runtime.cancellation import cancel
from shared.runtime.memory import release_freed_memory
from shared.runtime.settings import Settings

Check = Callable[[], Awaitable[str | None]]
Work = Callable[[], Awaitable[None]]

CHECK_SECONDS = 1.0

log = logs.logger()


class Service:
    def __init__(
        self, name: str, settings: Settings, *, scheduler: str = "", creates_streams: bool = False
    ) -> None:
        logs.set_up(settings)
        logs.bind(service=name, scheduler=scheduler)
        self.name = name
        self.scheduler = scheduler
        self.description = ""
        self.learner = ""
        self.settings = settings
        self.instance = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.label = f"{name} {scheduler}".strip()
        self.bus = Bus(
            settings,
            name,
            self.registry,
            client_name=self.label,
            creates_streams=creates_streams,
        )
        self._runs: RunBook | None = None
        self.checks: dict[str, Check] = {}
        self._problems: dict[str, str] = {"start": "not finished"}
        self.prepare: list[Work] = []
        self.background: list[Work] = []
        self.closing: list[Work] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._started_at = time.time()
        self._port = settings.http_port
        self._server: ServiceServer | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopping = False
        self._subscribe_to_roll_calls()

    def _subscribe_to_roll_calls(self) -> None:
        @self.bus.broker.subscriber(subjects.ROLL_CALL, title="Roll call")
        async def answer_roll_call(message: Message) -> bytes:
            return self.report().model_dump_json().encode()

    @property
    def runs(self) -> RunBook:
        """The run book; available once the bus is connected."""
        if self._runs is None:
            self._runs = RunBook(self.bus.jetstream)
        return self._runs

    async def _watch_health(self) -> None:
        while True:
            problems = {}
            for name, check in self.checks.items():
                try:
                    problem = await check()
                except Exception as error:
                    problem = repr(error)
                if problem:
                    problems[name] = problem
            self._problems = problems
            if self.bus.gave_up and self._server is not None:
                log.error("the NATS client gave up reconnecting; exiting for a restart")
                self._server.should_exit = True
            await asyncio.sleep(CHECK_SECONDS)

    def report(self) -> ServiceReport:
        """The health as of the last check, so that a roll call is answered at once."""
        problems = self._problems if self.bus.connected else {"nats": "not connected"}
        return ServiceReport(
            service=self.name,
            scheduler=self.scheduler,
            instance=self.instance,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_at=self._started_at,
            http_port=self._port,
            description=self.description,
            learner=self.learner,
            problems=problems,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """From the start to the stop; a start that fails or is stopped is undone."""
        logs.bind(service=self.name, scheduler=self.scheduler)  # not those of another one here
        try:
            await self._start_until_stopped()
            yield
        finally:
            await self.stop()
            await self.bus.broker.stop()

    async def _complete_start(self) -> None:
        """In the order that the module's docstring describes."""
        await self.start()
        await self._retry_until_done(self.bus.broker.start)
        await self.after_start()

    async def _start_until_stopped(self) -> None:
        self._starting = asyncio.create_task(self._complete_start())
        if self._stopping:
            self._starting.cancel()
        try:
            await self._starting
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            log.info("stopped before the start was done")

    def stop_starting(self) -> None:
        """Called by the handler of SIGTERM: NATS and ClickHouse may be waited for without end."""
        self._stopping = True
        if self._starting is not None and not self._starting.done():
            # `cancel` repeats the request because one may be lost. `call_soon_threadsafe` because
            # a signal handler does not wake the event loop.
            starting, loop = self._starting, self._starting.get_loop()
            loop.call_soon_threadsafe(
                lambda: self._tasks.append(loop.create_task(cancel(starting)))
            )

    async def start(self) -> None:
        """The steps before the subscribers."""
        await self.bus.connect()
        early = await self._answer_roll_calls_early()
        try:
            for work in [self.runs.open, *self.prepare]:
                await self._retry_until_done(work)
        except ArenaError as error:
            log.error("cannot start", reason=str(error))
            raise
        finally:
            if early is not None:
                await early.unsubscribe()

    async def _answer_roll_calls_early(self) -> Subscription | None:
        """Let /api/health say that a service waits for ClickHouse. Not a scheduler: it would
        count as deployed."""
        if self.scheduler:
            return None

        async def answer_roll_call(call: Msg) -> None:
            await call.respond(self.report().model_dump_json().encode())

        return await self.bus.listen(subjects.ROLL_CALL, answer_roll_call)

    def note_problem(self, part: str, problem: str) -> None:
        """Report why the start waits; replaced by the first health check."""
        self._problems = {"start": "not finished", part: problem}

    async def after_start(self) -> None:
        """The steps after the subscribers."""
        for work in [self._watch_health, release_freed_memory, *self.background]:
            self._tasks.append(asyncio.create_task(self._restart_on_error(work)))
        # Everything loaded until now stays: exempt it from garbage collection.
        gc.collect()
        gc.freeze()
        await self.bus.publish_event(
            Event(
                kind="service", service=self.name, message=f"{self.label} is up ({self.instance})"
            ),
            message_id=f"event.service.{self.instance}.up",
        )
        log.info("up", instance=self.instance, http_port=self._port)

    async def stop(self) -> None:
        await cancel(*self._tasks)
        for work in self.closing:
            await work()
        if self.bus.tracing:
            await asyncio.to_thread(self.bus.tracing.close)
        log.info("stopping")

    async def _retry_until_done(self, work: Work) -> None:
        while True:
            try:
                return await work()
            except TRANSIENT_ERRORS as error:
                self.note_problem("nats", repr(error))
                log.warning(
                    "a step of the start is retried", step=work.__qualname__, error=repr(error)
                )
                await asyncio.sleep(1)

    async def _restart_on_error(self, work: Work) -> None:
        """A lost connection must not end background work."""
        while True:
            try:
                return await work()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log.warning("background work is restarted", error=repr(error), exc_info=True)
                await asyncio.sleep(1)

    def app(self, routes: list[tuple[str, Any]] | None = None) -> AsgiFastStream:
        @get
        async def health(scope: Any) -> AsgiResponse:
            report = self.report()
            return AsgiResponse(
                report.model_dump_json().encode(),
                200 if report.healthy else 503,
                {"content-type": "application/json"},
            )

        @get
        async def alive(scope: Any) -> AsgiResponse:
            """Liveness: does not depend on NATS or ClickHouse."""
            return AsgiResponse(b"", 204)

        app = AsgiFastStream(
            self.bus.broker,
            asgi_routes=[
                ("/alive", alive),
                ("/health", health),
                ("/metrics", make_asgi_app(self.registry)),
                *(routes or []),
            ],
            asyncapi_path="/asyncapi",
            logger=None,
        )
        # FastStream's own tells uvicorn that the start is done before it starts the subscribers:
        # if one of them failed, the process would serve /alive for ever and consume nothing.
        app.start_lifespan_context = self.running  # type: ignore[method-assign,assignment]
        return app

    def listen(self) -> socket.socket:
        """Bind before the start, so that the port is known and a port in use is a clear error."""
        address = (self.settings.http_host, self.settings.http_port)
        try:
            listening = socket.create_server(address)
        except OSError as error:
            sys.exit(
                f"cannot listen on {address[0]}:{address[1]}: {error.strerror}; set "
                "HYBRID_HTTP_HOST and HYBRID_HTTP_PORT (0 takes any free port)"
            )
        self._port = listening.getsockname()[1]
        return listening

    def server(self, app: Any | None = None, **options: Any) -> ServiceServer:
        """The options are uvicorn's."""
        listening = self.listen()
        config = uvicorn.Config(
            app or self.app(),
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=10,
            ssl_certfile=self.settings.http_tls_cert,
            ssl_keyfile=self.settings.http_tls_key,
            **options,
        )
        self._server = ServiceServer(config, listening, self.stop_starting)
        return self._server

    def run(self, app: Any | None = None, **options: Any) -> None:
        """Serve until SIGTERM or SIGINT."""
        service_server.run(self.server(app, **options))
