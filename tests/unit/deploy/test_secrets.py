"""The passwords of an embedded arena: made once, readable by the owner only, kept by upgrades."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from deploy.local.arena import Secrets
from deploy.nats.permissions import USERS


def test_every_user_has_its_own_password_which_is_kept(tmp_path: Path) -> None:
    secrets = Secrets.load_or_make(tmp_path)
    assert secrets.nats.keys() == USERS.keys()
    passwords = [*secrets.nats.values(), secrets.clickhouse, secrets.analyst]
    assert len(set(passwords)) == len(passwords)
    assert all(len(password) >= 24 for password in passwords)
    assert Secrets.load_or_make(tmp_path) == secrets
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600


def test_the_secrets_of_an_older_arena_are_upgraded(tmp_path: Path) -> None:
    """It had one NATS password for all; ClickHouse's are kept, and a new user gets one."""
    path = tmp_path / "secrets.json"
    path.write_text(json.dumps({"nats": "shared", "clickhouse": "writer", "analyst": "reader"}))
    upgraded = Secrets.load_or_make(tmp_path)
    assert (upgraded.clickhouse, upgraded.analyst) == ("writer", "reader")
    assert upgraded.nats.keys() == USERS.keys()
    assert "shared" not in upgraded.nats.values()

    stored = json.loads(path.read_text())
    del stored["nats"]["admin"]
    path.write_text(json.dumps(stored))
    again = Secrets.load_or_make(tmp_path)
    assert again.nats | {"admin": ""} == upgraded.nats | {"admin": ""}
    assert again.nats["admin"]
    assert Secrets.load_or_make(tmp_path) == again
