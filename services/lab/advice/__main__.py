"""Answers one request of the dashboard: `python -m services.lab.advice FOLDER`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from services.lab.advice.request import Interrupted, answer_request
from services.lab.atomic_write import replace_text
from shared.errors import ArenaError
from shared.messages.advice import PROGRESS, AdviceProgress
from shared.runtime.gateway_client import GatewayClient
from shared.runtime.settings import Settings
from shared.store.client import Store


def main() -> None:
    folder, stopping = Path(sys.argv[1]), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    settings = Settings()
    token = settings.gateway_token.get_secret_value()
    address = os.environ.get("HYBRID_URL") or "http://127.0.0.1:8000"
    gateway = GatewayClient(address, token, settings.gateway_tls_ca)
    try:
        answer_request(folder, gateway, Store(settings), stopping)
    except Interrupted:
        sys.exit(0)  # it begins again when the arena does
    except ArenaError as error:
        failed = AdviceProgress(state="failed", text=str(error))
        replace_text(folder / PROGRESS, failed.model_dump_json())


main()
