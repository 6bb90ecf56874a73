"""Where Ingot answers otherwise than Redis on purpose: name of the case -> the reason.

A case listed here must really differ, else its test fails.
"""

DIFFERENCES: dict[str, str] = {
    "generic_keys/scan: an unknown cursor": "a cursor that Ingot did not give out is an error: a "
    "walk never starts or ends anywhere but where its cursor stands",
    "debug/debug: what looks into the structures of Redis": "there are none of these",
    "hyperloglog/hyperloglog: broken between its runs": "a PFADD that answers an error has added nothing",
}

LATER_SUBCOMMANDS = {"client|no-touch", "client|setinfo"}

# Commands that Redis has only since a version after 7.0, by their own tests.
LATER_COMMANDS = set(
    "hexpire hexpireat hpexpire hpexpireat httl hpttl hexpiretime hpexpiretime hpersist waitaof".split()
)
