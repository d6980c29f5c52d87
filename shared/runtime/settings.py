"""Settings of a process, from the environment (`HYBRID_...`).

Nothing here changes a result; what does is in the RunSpec.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

MEGABYTE = 1024 * 1024

Key = TypeVar("Key", str, SecretStr)


def _seconds(value: Any) -> Any:
    """A plain number in the environment means seconds."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _key(value: Key) -> Key:
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not re.fullmatch("([0-9a-f]{64})?", text):
        raise ValueError("an Ed25519 key is 64 hexadecimal digits")
    return value


Duration = Annotated[timedelta, BeforeValidator(_seconds)]


class Settings(BaseSettings):
    # An error names the setting, not its value, which may be a secret.
    model_config = SettingsConfigDict(
        env_prefix="HYBRID_",
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        hide_input_in_errors=True,
    )

    nats_url: str = Field(
        default="nats://127.0.0.1:4222", description="the servers of a cluster, comma-separated"
    )
    nats_user: str = ""
    nats_password: SecretStr = SecretStr("")
    # docs/operations.md says what these guarantee and cost.
    # The CA of NATS's certificate; if set, connections use TLS.
    nats_tls_ca: Path | None = None
    # For a NATS server that verifies client certificates.
    nats_tls_cert: Path | None = None
    nats_tls_key: Path | None = None
    nats_replicas: int = Field(default=1, ge=1, le=5, description="copies of each stream")
    nats_storage: Literal["file", "memory"] = "file"
    nats_sync_interval: str = Field(
        default="10s", description="how often the embedded NATS syncs to disk; or `always`"
    )

    clickhouse_url: str = "http://127.0.0.1:8123"
    clickhouse_user: str = "default"
    clickhouse_password: SecretStr = SecretStr("")
    clickhouse_database: str = "hybrid"
    # For an https URL: the CA, if the system does not trust it already.
    clickhouse_tls_ca: Path | None = None

    http_host: str = Field(default="127.0.0.1", description="where /health and /metrics listen")
    http_port: int = Field(default=0, ge=0, le=65535, description="0: any free port")
    # With both, only TLS is served.
    http_tls_cert: Path | None = None
    http_tls_key: Path | None = None

    policy: str = Field(
        default="",
        description="a worker's policy: a name, package.module:Class, file.py or file.onnx; with "
        "commas, one worker for each of them in this process",
    )
    plugins: str = Field(
        default="",
        description="the trainer's: policies of users that may have a learner, comma-separated",
    )

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"
    # OpenTelemetry traces of batches; with otlp, OTEL_EXPORTER_OTLP_ENDPOINT says where to.
    traces: Literal["", "otlp", "console"] = ""

    # Size limits of the streams; back-pressure starts before they are full.
    tasks_max_bytes: int = 512 * MEGABYTE
    decisions_max_bytes: int = 1024 * MEGABYTE
    results_max_bytes: int = 2048 * MEGABYTE

    # How long a stream remembers message ids; publishers retry for a much shorter time.
    duplicate_window: Duration = timedelta(minutes=2)
    # A message that is not acknowledged is redelivered after this. A batch takes milliseconds, so
    # after 10 s the process is dead or hanging.
    ack_wait: Duration = timedelta(seconds=10)
    # A batch that failed for a transient reason is retried after this.
    retry_delay: Duration = timedelta(seconds=1)
    publish_timeout: Duration = timedelta(seconds=5)

    # The shortest time between two messages with tasks of a run; a slow run waits longer, for more.
    tick: Duration = timedelta(milliseconds=100)
    # Larger batches are no faster and make results less regular.
    batch_tasks: int = Field(default=2000, ge=1, le=10_000)
    # The generator's lead over the fastest scheduler; a small one makes pausing quick.
    lead_batches: int = Field(default=24, ge=1)
    # How often the run book is polled: the delay of pause and resume.
    watch_interval: Duration = timedelta(milliseconds=200)
    # An event says so when tasks wait and a scheduler has had no new results for this long.
    stuck_after: Duration = timedelta(seconds=60)

    # How long the recorder waits for more messages to share one insert: fewer, larger inserts save
    # a third of ClickHouse's work, and the live feed does not depend on it.
    record_linger: Duration = timedelta(milliseconds=500)
    record_messages: int = Field(default=64, ge=1)

    # The trainer works at most this share of the time, so that it never starves the pipeline.
    trainer_share: float = Field(default=0.5, gt=0, le=1)
    # Its niceness: when both need a core, the pipeline has priority.
    trainer_nice: int = Field(default=5, ge=0, le=19)
    # How long a run waits for pre-trained models before it starts without them.
    pretrain_patience: Duration = timedelta(seconds=60)

    # What the executor may take of its machine. Programs that tasks may name: a YAML file of names,
    # each with the program and its arguments as a list.
    commands: Path | None = None
    executor_task_seconds: float = Field(default=600, gt=0, description="longest task of any run")
    executor_task_memory_mb: float = Field(default=8192, gt=0, description="largest task")
    executor_memory_mb: float = Field(
        default=0,
        ge=0,
        description="of all devices together; 0: four fifths of the machine's or container's",
    )

    # The trainer signs models with this key; workers verify with the public key. Without it,
    # signatures are not checked.
    model_key: Annotated[SecretStr, AfterValidator(_key)] = SecretStr("")
    model_public_key: Annotated[str, AfterValidator(_key)] = ""

    # If set, requests that change something need this token.
    gateway_token: SecretStr = SecretStr("")
    # The address outside of its container, and whether a network may use it without a token.
    gateway_published: str = ""
    gateway_allow_open: bool = False
    # For its clients: the CA, if the system does not trust it already.
    gateway_tls_ca: Path | None = None
    gateway_max_body_bytes: int = 2 * MEGABYTE
    # Other origins that may use it from a browser, as `https://host:port`, comma-separated.
    gateway_origins: str = ""
    # Host names with a dot that it accepts, comma-separated; * for any.
    gateway_hosts: str = ""
    # Proxies whose X-Forwarded-For is trusted: addresses or networks, comma-separated.
    gateway_trusted_proxies: str = "127.0.0.1"
    # Requests per second and client address; 0: unlimited. Two hundred dashboards behind one
    # address send about three hundred reads per second.
    gateway_reads_per_second: float = Field(default=500, ge=0)
    gateway_changes_per_second: float = Field(default=50, ge=0)
    gateway_sockets_per_client: int = Field(default=500, ge=1)
    # The built dashboard; default: dashboard/dist in the source tree.
    dashboard_dir: Path | None = None
    # Folders of experiments, whose reports the dashboard shows; none: it shows no reports.
    reports_dir: Path | None = None

    @property
    def nats_servers(self) -> list[str]:
        return [url.strip() for url in self.nats_url.split(",")]
