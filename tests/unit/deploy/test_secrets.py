"""The passwords of an embedded arena: made once, for the owner alone, and kept over upgrades."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from deploy.local.arena import Secrets
from deploy.nats.permissions import USERS


def test_every_user_has_a_password_of_its_own_that_stays(tmp_path: Path) -> None:
    made = Secrets.load_or_make(tmp_path)
    assert made.nats.keys() == USERS.keys()
    everybody = [*made.nats.values(), made.clickhouse, made.analyst]
    assert len(set(everybody)) == len(everybody)
    assert all(len(password) >= 24 for password in everybody)
    assert Secrets.load_or_make(tmp_path) == made
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600


def test_the_secrets_of_an_older_arena_are_upgraded(tmp_path: Path) -> None:
    """It had one NATS password for all; ClickHouse's stay, and a user that is new gets one."""
    path = tmp_path / "secrets.json"
    path.write_text(json.dumps({"nats": "shared", "clickhouse": "writer", "analyst": "reader"}))
    upgraded = Secrets.load_or_make(tmp_path)
    assert (upgraded.clickhouse, upgraded.analyst) == ("writer", "reader")
    assert upgraded.nats.keys() == USERS.keys()
    assert "shared" not in upgraded.nats.values()

    said = json.loads(path.read_text())
    del said["nats"]["admin"]
    path.write_text(json.dumps(said))
    again = Secrets.load_or_make(tmp_path)
    assert again.nats | {"admin": ""} == upgraded.nats | {"admin": ""}
    assert again.nats["admin"]
    assert Secrets.load_or_make(tmp_path) == again
