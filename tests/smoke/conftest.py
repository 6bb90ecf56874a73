"""Real clients: nothing but their own libraries and a running Ingot. See test_clients.py."""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))
