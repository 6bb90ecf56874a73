"""INFO: Redis' sections and fields are there, and what counts the same counts the same."""

import re
import time

import pytest

# What exporters and dashboards read; every field has a meaning in Ingot too.
FIELDS = {
    "server": "redis_version redis_mode os arch_bits process_id run_id tcp_port uptime_in_seconds "
    "uptime_in_days hz executable config_file io_threads_active",
    "clients": "connected_clients maxclients blocked_clients client_recent_max_input_buffer "
    "client_recent_max_output_buffer tracking_clients",
    "memory": "used_memory used_memory_human used_memory_rss used_memory_peak used_memory_peak_human "
    "total_system_memory maxmemory maxmemory_human maxmemory_policy mem_fragmentation_ratio mem_allocator "
    "used_memory_lua used_memory_lua_human used_memory_vm_eval used_memory_vm_functions used_memory_vm_total "
    "used_memory_scripts used_memory_scripts_human used_memory_scripts_eval used_memory_functions "
    "number_of_cached_scripts number_of_functions number_of_libraries",
    "persistence": "loading rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time "
    "rdb_last_bgsave_status aof_enabled aof_last_write_status",
    "stats": "total_connections_received total_commands_processed instantaneous_ops_per_sec "
    "total_net_input_bytes total_net_output_bytes instantaneous_input_kbps instantaneous_output_kbps "
    "rejected_connections expired_keys evicted_keys keyspace_hits keyspace_misses "
    "total_error_replies latest_fork_usec pubsub_channels pubsub_patterns",
    "replication": "role connected_slaves master_replid master_repl_offset",
    "cpu": "used_cpu_sys used_cpu_user",
    "cluster": "cluster_enabled",
}
SAME_VALUE = set("redis_mode arch_bits role connected_slaves cluster_enabled maxclients loading number_of_functions number_of_libraries".split())


def fields_of(client, *sections):
    text = client.call("INFO", *sections).text()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def titles_of(client, *sections):
    return re.findall(r"(?m)^# (\w+)", client.call("INFO", *sections).text())


@pytest.mark.parametrize("section", FIELDS)
def test_fields(empty_pair, section):
    redis, other = (fields_of(admin, section) for admin in empty_pair.admins)
    wanted = set(FIELDS[section].split())
    assert wanted <= set(redis), f"Redis has no {wanted - set(redis)}"
    assert wanted <= set(other), f"missing: {sorted(wanted - set(other))}"
    for field in wanted & SAME_VALUE:
        assert other[field] == redis[field], field


# Fields of Redis that Ingot does not have, by section: name -> why.
WITHOUT: dict[str, dict[str, str]] = {}
# Sections whose fields are names of commands, errors and databases.
BY_USE = ("commandstats", "errorstats", "latencystats", "keyspace")


def sections_of(client):
    """Section in lower case -> the names of its fields, of all there is."""
    text = client.call("INFO", "everything").text()
    return {part.split("\r\n")[0].lower(): {line.split(":")[0] for line in part.split("\r\n")[1:] if ":" in line}
            for part in text.removeprefix("# ").split("# ")}  # fmt: skip


@pytest.mark.parametrize("log", ["yes", "no"])
def test_every_field_of_redis_is_there(empty_pair, log):
    empty_pair.both("CONFIG", "SET", "appendonly", log)
    try:
        redis, other = map(sections_of, empty_pair.admins)
    finally:
        empty_pair.both("CONFIG", "SET", "appendonly", "no")
    for section, fields in redis.items():
        assert section in other
        if section not in BY_USE:
            missing = fields - other[section]
            assert missing == set(WITHOUT.get(section, {})), f"{section}: {sorted(missing)}"


def test_field_values_have_redis_form(empty_pair):
    redis, other = (fields_of(admin) for admin in empty_pair.admins)
    number = re.compile(r"-?\d+(\.\d+)?")
    for field in {name for names in FIELDS.values() for name in names.split()} & set(redis):
        if number.fullmatch(redis[field]) and field != "config_file":
            assert number.fullmatch(other[field]), f"{field}:{other[field]}"
    assert re.fullmatch(r"[0-9a-f]{40}", other["run_id"])
    assert int(other["tcp_port"]) == empty_pair.servers[1].port
    assert int(other["process_id"]) == empty_pair.servers[1].process.pid


def test_sections(empty_pair):
    redis, other = (titles_of(admin) for admin in empty_pair.admins)
    assert set(redis) - {"Modules"} <= set(other)
    for sections in (["stats"], ["cpu", "stats"], ["STATS"], ["commandstats"], ["errorstats"], ["keyspace"]):
        left, right = (titles_of(admin, *sections) for admin in empty_pair.admins)
        assert right == left, sections
    for everything in ("all", "everything"):
        assert {"Commandstats", "Engine", "Threads"} - own_sections(empty_pair) <= set(
            titles_of(empty_pair.admins[1], everything)
        )


def own_sections(pair):
    """Sections that only Ingot has; none of them when Redis stands in for it."""
    return {"Engine", "Threads"} if pair.servers[1].name == "ingot (redis)" else set()


def statistics(pair, commands, section, pattern):
    """Runs commands on both after CONFIG RESETSTAT; the lines of an INFO section that match."""
    pair.both("CONFIG", "RESETSTAT")
    for command in commands:
        pair.both(*command.split())
    return [
        sorted(re.findall(pattern, admin.call("INFO", section).text(), re.MULTILINE))
        for admin in pair.admins
    ]


def test_hits_and_misses(empty_pair):
    commands = ["SET a 1", "GET a", "GET b", "MGET a b c", "EXISTS a b", "TTL a", "TYPE b", "STRLEN a"]
    commands += ["GETRANGE b 0 1", "TOUCH a b", "SET a 2", "INCR a", "APPEND b x", "GETSET a 3", "GETDEL zzz"]
    redis, other = statistics(empty_pair, commands, "stats", r"^keyspace_\w+:\d+")
    assert other == redis


def test_expired_keys(empty_pair):
    commands = ["SET a 1", "EXPIRE a -1", "SET b 1 PXAT 1", "DEBUG SLEEP 0.3", "GET b"]
    redis, other = statistics(empty_pair, commands, "stats", r"^expired_keys:\d+")
    assert other == redis


def test_command_statistics(empty_pair):
    commands = ["GET a", "get a", "GET", "SET a x", "INCR a", "NOSUCH", "CLIENT GETNAME", "CONFIG GET port"]
    commands += ["MULTI", "GET a", "EXEC", "CLIENT NOSUCH", "OBJECT ENCODING a", "SET a 1 EX 0"]
    pattern = r"^(cmdstat_\S+?):(calls=\d+),.*(rejected_calls=\d+,failed_calls=\d+)"
    redis, other = statistics(empty_pair, commands, "commandstats", pattern)
    assert other == redis


def test_error_statistics(empty_pair):
    commands = ["GET", "NOSUCH", "SET a x", "INCR a", "AUTH nobody x", "HELLO 9", "MULTI", "NOSUCH", "EXEC"]
    redis, other = statistics(empty_pair, commands, "errorstats", r"^errorstat_\w+:count=\d+")
    assert other == redis


def test_resetstat(empty_pair):
    for admin in empty_pair.admins:
        admin.call("GET", "missing")
        admin.call("CONFIG", "RESETSTAT")
        fields = fields_of(admin, "stats")
        assert fields["keyspace_misses"] == fields["total_error_replies"] == "0"
        # INFO itself and, in Redis, the RESETSTAT that is just finishing.
        assert int(fields["total_commands_processed"]) <= 2


def test_average_ttl(empty_pair):
    """An estimate in both: of keys that have 50 to 100 seconds left, and of those that have no end."""
    for admin in empty_pair.admins:
        admin.pipeline([("SET", f"k{i}", "v", "PX", 50_000 + i * 50) for i in range(1000)])
        admin.pipeline([("SET", f"forever{i}", "v") for i in range(1000)])
        deadline = time.monotonic() + 20
        while "avg_ttl=0" in (line := fields_of(admin, "keyspace")["db0"]):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        found = re.fullmatch(r"keys=2000,expires=1000,avg_ttl=(\d+)", line)
        assert found and 25_000 < int(found[1]) <= 100_000, line
