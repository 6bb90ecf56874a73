"""The written cases, each under RESP2 and RESP3 and on every engine."""

import pytest
from differences import DIFFERENCES
from runner import run_case
from script import load_cases

CASES = load_cases()
# Those that are run with collections in their large form, too. (Of hashes it changes the order.)
LARGE = [case for case in CASES if case.name.split("/")[0] in ("list", "set", "stream", "zset")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(pair, protocol, case):
    if protocol == 3 and "resp2" in case.tags:
        pytest.skip("a case for RESP2 alone")
    notes = run_case(pair, case, protocol)
    reason = DIFFERENCES.get(case.name)
    if reason is not None:
        assert notes, f"declared as different ({reason}), but it is equal: take it off the list"
    elif notes:
        pytest.fail(case.name + "\n" + "\n".join(notes), pytrace=False)


@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_case_large(large_pair, protocol, case):
    test_case(large_pair, protocol, case)


def test_every_declared_difference_is_a_case():
    assert set(DIFFERENCES) <= {case.name for case in CASES}
