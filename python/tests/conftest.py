"""What the tests share."""

import os

# Where tests of devices run: `WARPSET_TEST_DEVICE=cuda:0` on a machine with a GPU.
DEVICE = os.environ.get("WARPSET_TEST_DEVICE", "emulator")
