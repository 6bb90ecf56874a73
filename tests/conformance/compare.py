"""How the replies of two servers are compared: equal, or equal up to what a case declares.

compare(how, expected, actual) knows these `how`s (after `~` in a case):

    (none)       equal: kind on the wire and value
    sorted       equal after sorting arrays and sets, at every level
    near=N       integers may differ by N (never in sign); everything else equal
    kind         the same kind of reply
    shape        the same kinds at every level, the same lengths
    error        both are errors with the same first word
    digits       equal when every run of digits is replaced by one sign
    pairs        a map, or a flat array of pairs, equal in any order
    pairs-=a,b   the same without the values of these keys
    fields=a,b   lines of name=value (blanks or commas between): the same names in the same order (but for those of later
                 versions at the end), these values equal
    debugobject  DEBUG OBJECT without address, sizes and clocks
    help         HELP of a container of which Ingot has a part: each of its lines is one of Redis'
"""

import re

from support.resp import Reply

NESTED = ("array", "set", "push")


def compare(how, expected, actual):
    name, _, argument = how.partition("=")
    if expected.kind == "closed" or actual.kind == "closed":
        return expected == actual
    return COMPARISONS[name](expected, actual, argument)


def canonical(reply):
    if reply.kind in NESTED:
        return Reply(reply.kind, sorted(map(canonical, reply.value), key=full))
    if reply.kind == "map":
        pairs = [(canonical(k), canonical(v)) for k, v in reply.value]
        return Reply("map", sorted(pairs, key=lambda pair: full(pair[0])))
    return reply


def full(reply):
    """A sort key that, unlike repr(), never shortens."""
    return (reply.kind, str(reply.value))


def is_equal(expected, actual, _):
    return expected == actual


def is_equal_sorted(expected, actual, _):
    return canonical(expected) == canonical(actual)


def is_near(expected, actual, argument):
    if expected.kind != actual.kind:
        return False
    if expected.kind == "integer":
        same_side = (expected.value < 0) == (actual.value < 0)
        return same_side and abs(expected.value - actual.value) <= int(argument)
    if expected.kind in NESTED:
        return len(expected.value) == len(actual.value) and all(
            is_near(e, a, argument) for e, a in zip(expected.value, actual.value)
        )
    if expected.kind == "map":
        return len(expected.value) == len(actual.value) and all(
            is_near(e, a, argument)
            for pairs in zip(expected.value, actual.value)
            for e, a in zip(*pairs)
        )
    return expected == actual


def is_same_kind(expected, actual, _):
    return expected.kind == actual.kind


def is_same_shape(expected, actual, _):
    if expected.kind != actual.kind:
        return False
    if expected.kind in NESTED:
        return len(expected.value) == len(actual.value) and all(
            is_same_shape(e, a, _) for e, a in zip(expected.value, actual.value)
        )
    return True


def is_same_error(expected, actual, _):
    return expected.kind == actual.kind == "error" and (
        expected.value.split()[:1] == actual.value.split()[:1]
    )


def without_digits(reply):
    if isinstance(reply.value, bytes):
        return Reply(reply.kind, re.sub(rb"\d+", b"#", reply.value))
    if reply.kind in NESTED:
        return Reply(reply.kind, list(map(without_digits, reply.value)))
    return Reply(reply.kind, 0) if reply.kind == "integer" else reply


def is_equal_without_digits(expected, actual, _):
    return without_digits(expected) == without_digits(actual)


def as_dict(reply):
    """A map, or the flat array that stands for one in RESP2, as key bytes -> Reply."""
    if reply.kind == "map":
        return {key.value: value for key, value in reply.value}
    values = reply.value
    return {values[i].value: values[i + 1] for i in range(0, len(values), 2)}


def is_equal_pairs(expected, actual, argument, without_values=False):
    if expected.kind != actual.kind:
        return False
    if expected.kind not in ("map", "array"):
        return expected == actual
    left, right = as_dict(expected), as_dict(actual)
    for key in argument.encode().split(b","):
        if without_values and key in left and key in right:
            del left[key], right[key]
    return left == right


def is_equal_pairs_but(expected, actual, argument):
    return is_equal_pairs(expected, actual, argument, without_values=True)


def name_value_lines(reply):
    lines = reply.value.decode("latin-1").strip("\n").split("\n")
    return [[tuple(item.partition("=")[::2]) for item in re.split("[ ,]", line)] for line in lines]


# What Redis 7.2 has put at the end of a client's line.
LATER_FIELDS = ["lib-name", "lib-ver"]


def without_later_fields(line):
    return line[:-2] if [name for name, _ in line[-2:]] == LATER_FIELDS else line


def has_equal_fields(expected, actual, argument):
    if expected.kind != actual.kind or not isinstance(actual.value, bytes):
        return False
    left, right = name_value_lines(expected), name_value_lines(actual)
    right = [without_later_fields(line) for line in right]
    if [[name for name, _ in line] for line in left] != [[name for name, _ in line] for line in right]:
        return False
    checked = set(argument.split(","))
    return all(
        value_l == value_r
        for line_l, line_r in zip(left, right)
        for (name, value_l), (_, value_r) in zip(line_l, line_r)
        if name in checked
    )


def is_equal_debug_object(expected, actual, _):
    def reduced(reply):
        volatile = rb"(at:|serializedlength:|lru:|lru_seconds_idle:)\w+"
        return Reply(reply.kind, re.sub(volatile, rb"\1#", reply.value))

    return reduced(expected) == reduced(actual)


def is_part_of_help(expected, actual, _):
    left, right = expected.value, actual.value
    if expected.kind != actual.kind or left[0] != right[0] or left[-2:] != right[-2:]:
        return False
    return len(right) > 3 and all(line in left for line in right)


COMPARISONS = {
    "": is_equal,
    "sorted": is_equal_sorted,
    "near": is_near,
    "kind": is_same_kind,
    "shape": is_same_shape,
    "error": is_same_error,
    "digits": is_equal_without_digits,
    "pairs": is_equal_pairs,
    "pairs-": is_equal_pairs_but,
    "fields": has_equal_fields,
    "debugobject": is_equal_debug_object,
    "help": is_part_of_help,
}
