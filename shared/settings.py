"""How a process is set up: where the others are and how patient it is.

Everything comes from the environment (`HYBRID_...`). Nothing here changes a result; what does is
in the RunSpec.
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
    """The environment has only text: a plain number there means seconds."""
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
    # What is wrong may be a secret: an error names the setting and not its value.
    model_config = SettingsConfigDict(
        env_prefix="HYBRID_",
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        hide_input_in_errors=True,
    )

    nats_url: str = Field(
        default="nats://127.0.0.1:4222", description="the servers of a cluster by commas"
    )
    nats_user: str = ""
    nats_password: SecretStr = SecretStr("")
    # What these guarantee, and cost, is in docs/operations.md.
    # The authority that NATS's certificate must be signed by: with it everything goes through TLS.
    nats_tls_ca: Path | None = None
    # For a NATS that asks its clients for a certificate too.
    nats_tls_cert: Path | None = None
    nats_tls_key: Path | None = None
    nats_replicas: int = Field(default=1, ge=1, le=5, description="copies of each stream")
    nats_storage: Literal["file", "memory"] = "file"
    nats_sync_interval: str = Field(
        default="10s", description="of the embedded NATS: how often it syncs; `always` is possible"
    )

    clickhouse_url: str = "http://127.0.0.1:8123"
    clickhouse_user: str = "default"
    clickhouse_password: SecretStr = SecretStr("")
    clickhouse_database: str = "hybrid"
    # For a URL with https: the authority, when it is not one that this system trusts anyway.
    clickhouse_tls_ca: Path | None = None

    http_host: str = Field(default="127.0.0.1", description="where /health and /metrics listen")
    http_port: int = Field(default=0, ge=0, le=65535, description="0: any free port")
    # With both, it speaks TLS alone.
    http_tls_cert: Path | None = None
    http_tls_key: Path | None = None

    policy: str = Field(
        default="",
        description="what a scheduler serves: a built-in name, package.module:Class, or file.py",
    )

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"

    # How much each stream may hold on disk before the generator is held back.
    tasks_max_bytes: int = 512 * MEGABYTE
    decisions_max_bytes: int = 1024 * MEGABYTE
    results_max_bytes: int = 2048 * MEGABYTE

    # The stream forgets message ids after this; a publisher retries for much less long.
    duplicate_window: Duration = timedelta(minutes=2)
    # A message that a dead process had taken is given to another one after this. Work on a batch
    # takes milliseconds, so 10 s means dead or hanging.
    ack_wait: Duration = timedelta(seconds=10)
    # A batch that failed for a passing reason is tried again after this.
    retry_delay: Duration = timedelta(seconds=1)
    publish_timeout: Duration = timedelta(seconds=5)

    # The generator sends what is due this often. Every message costs a few milliseconds of CPU on
    # its way through all schedulers; ten a second still look live.
    tick: Duration = timedelta(milliseconds=100)
    # Larger batches gain nothing in speed and make results come in lumps.
    batch_tasks: int = Field(default=2000, ge=1, le=10_000)
    # The generator keeps this many batches ahead of the fastest scheduler, so pausing is quick.
    lead_batches: int = Field(default=24, ge=1)
    # How often runs are looked at: the delay of pause and resume.
    watch_interval: Duration = timedelta(milliseconds=200)

    # The recorder waits this long for more messages to share one insert: fewer, larger parts spare
    # ClickHouse a third of its work (measured), and the live feed does not come from there.
    record_linger: Duration = timedelta(milliseconds=500)
    record_messages: int = Field(default=128, ge=1)

    # The trainer works at most this share of the time, so that learning never starves the pipeline.
    trainer_share: float = Field(default=0.5, gt=0, le=1)
    # And where both want a core, the pipeline goes first.
    trainer_nice: int = Field(default=5, ge=0, le=19)
    # How long a run waits for its pre-trained models before it starts without them.
    pretrain_patience: Duration = timedelta(seconds=60)

    # The trainer signs models with this key; its public half is all that the others need. Without
    # that a model is taken from whoever may publish it.
    model_key: Annotated[SecretStr, AfterValidator(_key)] = SecretStr("")
    model_public_key: Annotated[str, AfterValidator(_key)] = ""

    # The gateway asks for this token on every call that changes something, when it is set.
    gateway_token: SecretStr = SecretStr("")
    # For its clients: the authority, when it is not one that this system trusts anyway.
    gateway_tls_ca: Path | None = None
    gateway_max_body_bytes: int = 2 * MEGABYTE
    # Pages of other hosts that may use it from a browser, as `https://host:port`, by commas.
    gateway_origins: str = ""
    # Names with a dot under which it may be called, by commas; * for any.
    gateway_hosts: str = ""
    # Proxies, as addresses or networks by commas, whose word for a client's address is taken.
    gateway_trusted_proxies: str = "127.0.0.1"
    # Calls of one client address a second; 0: as many as it likes. Two hundred dashboards behind
    # one address read some three hundred times a second.
    gateway_reads_per_second: float = Field(default=500, ge=0)
    gateway_changes_per_second: float = Field(default=50, ge=0)
    gateway_sockets_per_client: int = Field(default=500, ge=1)
    # The built dashboard; none: the one beside the source, when it was built.
    dashboard_dir: Path | None = None

    @property
    def nats_servers(self) -> list[str]:
        return [url.strip() for url in self.nats_url.split(",")]
