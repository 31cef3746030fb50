"""What the tests share."""

import os
import signal

import pytest

# Where tests of devices run: `WARPSET_TEST_DEVICE=cuda:0` on a machine with a GPU.
DEVICE = os.environ.get("WARPSET_TEST_DEVICE", "emulator")


@pytest.fixture
def interrupts():
    """Ctrl-C raises `KeyboardInterrupt`, also where the tests were started with it ignored, as a shell does in the
    background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
