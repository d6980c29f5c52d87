"""Write deploy/nats/users.conf."""

from pathlib import Path

from deploy.nats.permissions import users_conf

if __name__ == "__main__":
    (Path(__file__).parent / "users.conf").write_text(users_conf())
