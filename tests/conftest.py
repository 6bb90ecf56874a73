"""What both suites share: the seed is told, and the ordinary run is kept short.

What these files test stands above the engine. In the ordinary run LevelDB gets a third of them, another third each time
(by the seed); with INGOT_TEST_FULL=1 it gets them all.
"""

import re
import zlib

from support.effort import FULL, SEED

ABOVE_THE_ENGINE = re.compile(
    r"smoke/test_|conformance/test_(?!random|reopen)|promises/test_(p3_large|p5_|p7_|client_side|expiry|leaving|live_changes|script|ssdb_import)"
    r"|replication/test_(sentinel|master|large_values|selected_database|hostile_masters)"
)


def pytest_configure(config):
    config.addinivalue_line("markers", "full: takes long, or needs much installed: only with INGOT_TEST_FULL=1")
    config.addinivalue_line("markers", "timed: fails when somebody waits for a second or less, so no other test may run beside it")


def pytest_report_header():
    return f"INGOT_SEED={SEED}" + (" INGOT_TEST_FULL=1" if FULL else "")


def is_left_out(item):
    if FULL:
        return False
    if item.get_closest_marker("full"):
        return True
    if "leveldb" not in item.name or not ABOVE_THE_ENGINE.search(item.nodeid):
        return False
    return (zlib.crc32(item.nodeid.encode()) + SEED) % 3 != 0


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item)]
