"""How much is tested, and with which random choices: INGOT_TEST_FULL=1, INGOT_SEED=n."""

import os
import random

FULL = os.environ.get("INGOT_TEST_FULL") == "1"
SEED = int(os.environ.get("INGOT_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
