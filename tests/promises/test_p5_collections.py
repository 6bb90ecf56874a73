"""P5: a collection larger than the memory is filled, read whole and changed within maxmemory."""

import pytest
from collections_of import TYPES, fill, read_all, size
from harness import MB
from large_values import send_command, slow_socket
from memory_bound import limited
from support.effort import FULL
from support.servers import self_check

pytestmark = pytest.mark.skipif(self_check(), reason="Redis keeps everything in memory")

COUNT = 1_250_000 if FULL else 75_000  # of some 800 bytes: a reply held whole would break the bound


def drain(sock):
    """Reads replies until the one to a PING behind them; how many bytes."""
    total, tail = 0, b""
    while not tail.endswith(b"+PONG\r\n"):
        data = sock.recv(1 << 18)
        assert data, "the server hung up"
        total += len(data)
        tail = (tail + data)[-7:]
    return total


@pytest.mark.seconds(240)
@pytest.mark.parametrize("kind", TYPES)
def test_a_collection_larger_than_the_memory(engine, kind):
    if engine == "leveldb" and kind not in ("hash", "zset") and not FULL:
        pytest.skip("two types show it")
    with limited(engine) as (server, memory), server.client(timeout=60) as client:
        fill(client, kind, "large", COUNT)
        memory.check(f"{COUNT} elements of a {kind}")
        assert size(client, kind, "large") == COUNT
        with slow_socket(server) as sock:
            send_command(sock, *read_all(kind, "large"))
            send_command(sock, "PING")
            before = memory.peak()
            answered = drain(sock)
        assert answered > 50 * MB
        assert memory.peak() < before + 24 * MB, "the reply was held in memory"
        memory.check(f"a reply of {answered >> 20} MB")
        assert answered > COUNT * 800
        assert client.call("MEMORY", "USAGE", "large").value > COUNT * 400
        assert client.call("UNLINK", "large").value == 1
        fill(client, kind, "large", 1000)
        memory.check("dropping it")
        assert size(client, kind, "large") == 1000
