from services.scheduler.policies.eft import EarliestFinish
from shared.domain.schedulers import CLAIRVOYANT


class Clairvoyant(EarliestFinish):
    """Earliest finish with the real times of tasks, which nobody can know before they have run.

    A reference, not a competitor: what `eft` loses to it is the price of uncertainty.
    """

    name = CLAIRVOYANT
    knows_real_times = True
