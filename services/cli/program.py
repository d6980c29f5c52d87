"""The `hybrid` program."""

import sys

from services.cli import interrupts

interrupts.end_at_once()  # first: the other imports take a while

from services.cli.main import app  # noqa: E402


def main() -> None:
    interrupts.raise_in_commands()
    try:
        app(prog_name="hybrid")
    except KeyboardInterrupt:  # outside of a command: commands handle it themselves
        sys.exit(interrupts.INTERRUPTED)
    finally:
        interrupts.end_at_once()


if __name__ == "__main__":
    main()
