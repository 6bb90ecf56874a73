"""P3 for values that no one holds whole: a streamed reply, a staged argument and a result that is
built beside the writer show one state, whatever happens to the value meanwhile."""

import contextlib
import time

from harness import MB, OK, Crew, ingot
from large_values import block, receive_exactly, receive_line, receive_value, send_command
from large_values import slow_socket, store

LARGE = 64 * MB
MARK = b"changed!"


def with_mark(at_block):
    """The blocks of a value with MARK at the beginning of one."""
    return lambda number: MARK + block(number)[8:] if number == at_block else block(number)


def test_a_reply_shows_the_state_it_was_asked_in(engine):
    """GETs that their clients read late, while the value is changed, deleted and set anew."""
    with ingot(engine) as server, server.client(timeout=30) as client:
        store(server, "large", LARGE)
        with slow_socket(server) as first, slow_socket(server) as second:
            send_command(first, "GET", "large")
            head = receive_exactly(first, 1)
            assert client.call("SETRANGE", "large", 40 * MB, MARK).value == LARGE
            send_command(second, "GETDEL", "large")
            second_head = receive_exactly(second, 1)
            assert head == second_head == b"$"
            assert client.call("SET", "large", "small") == OK
            assert client.call("APPEND", "large", bytes(MB - 5)).value == MB
            time.sleep(3)  # the collector is at work meanwhile
            for sock, expected in ((first, block), (second, with_mark(40))):
                assert receive_line(sock) == b"%d" % LARGE
                for number in range(LARGE // MB):
                    assert receive_exactly(sock, MB) == expected(number), f"block {number} differs"
                assert receive_exactly(sock, 2) == b"\r\n"


def test_a_transaction_reads_what_it_wrote_so_far(engine):
    with ingot(engine) as server, slow_socket(server, buffer_bytes=MB) as sock:
        send_command(sock, "MULTI")
        send_command(sock, "SET", "large", large_bytes=LARGE)
        send_command(sock, "GET", "large")
        send_command(sock, "SETRANGE", "large", 9 * MB, MARK)
        send_command(sock, "GET", "large")
        send_command(sock, "SETRANGE", "large", 9 * MB, block(9)[:8])
        send_command(sock, "APPEND", "large", large_bytes=8 * MB)
        send_command(sock, "COPY", "large", "copy")
        send_command(sock, "GETDEL", "large")
        send_command(sock, "EXISTS", "large")
        send_command(sock, "EXEC")
        assert [receive_line(sock) for _ in range(10)] == [b"+OK"] + [b"+QUEUED"] * 9
        assert [receive_line(sock) for _ in range(2)] == [b"*9", b"+OK"]
        receive_value(sock, LARGE)
        assert receive_line(sock) == b":%d" % LARGE
        receive_value(sock, LARGE, expected=with_mark(9))
        grown = LARGE + 8 * MB
        assert [receive_line(sock) for _ in range(3)] == [b":%d" % LARGE, b":%d" % grown, b":1"]

        def after_append(number):
            return block(number % (LARGE // MB))

        receive_value(sock, grown, expected=after_append)
        assert receive_line(sock) == b":0"
        send_command(sock, "GET", "copy")
        receive_value(sock, grown, expected=after_append)


def test_results_built_beside_the_writer_lose_no_change(engine):
    """COPY and a large APPEND of a value to which others append all the time."""
    appended = []
    with ingot(engine) as server, server.client(timeout=60) as client:
        store(server, "large", LARGE)

        def append_small(stop):
            with server.client(timeout=30) as other:
                while not stop.is_set():
                    other.call("APPEND", "large", ".")
                    appended.append(1)

        with Crew() as crew, slow_socket(server, buffer_bytes=MB) as sock:
            crew.add(append_small, crew.stop)
            assert client.call("COPY", "large", "copy").value == 1
            send_command(sock, "APPEND", "large", large_bytes=8 * MB)
            assert receive_line(sock).startswith(b":")
        assert client.call("STRLEN", "large").value == LARGE + 8 * MB + len(appended)
        dots = client.call("STRLEN", "copy").value - LARGE
        assert 0 <= dots <= len(appended)
        assert client.call("GETRANGE", "copy", LARGE, -1).value == b"." * dots
        for number in (0, 31, 63):
            part = client.call("GETRANGE", "copy", number * MB, number * MB + MB - 1)
            assert part.value == block(number)


def test_several_large_appends_lose_nothing(engine):
    """One that waited for the pool was built onto where the string had ended before it came to the others."""
    with ingot(engine, reader_threads=1) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.client(timeout=60)) for _ in range(4)]
        for _ in range(4):
            assert clients[0].call("SET", "large", b"0" * (8 * MB)) == OK
            for number, client in enumerate(clients):
                client.send("APPEND", "large", b"%d" % (number + 1) * (5 * MB))
            lengths = sorted(client.read().value // MB for client in clients)
            assert lengths == [13, 18, 23, 28]
            value = clients[0].call("GET", "large").value
            assert len(value) == 28 * MB and {value.count(b"%d" % number) for number in range(1, 5)} == {5 * MB}
