"""Whether policies can be loaded, as a program: `python -m services.scheduler.check_policy FILE`.

Prints the name of each; ends with 1 and the reason at the first that a worker could not load.
"""

from __future__ import annotations

import sys

from services.scheduler import policy as policies


def main(references: list[str]) -> None:
    for reference in references:
        try:
            print(policies.load(reference).name)
        except policies.PolicyError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
