"""Values of hundreds of megabytes over sockets, never more than one block of them in Python.

Block i of a value is 1 MB: its number in eight bytes, then bytes that do not compress.
"""

import random
import socket
import time

MB = 1 << 20
BLOCK_BYTES = MB
_NOISE = random.Random(5).randbytes(BLOCK_BYTES)


def block(number):
    return number.to_bytes(8, "big") + _NOISE[8:]


def slow_socket(server, buffer_bytes=64 * 1024, timeout=60.0):
    """A connection whose kernel buffers are small."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
    plain.settimeout(timeout)
    plain.connect(("127.0.0.1", server.port))
    return plain


def send_command(sock, *args, large_bytes=None, pause_s=0.0):
    """Sends a command; `large_bytes` adds a last argument of so many bytes, in pieces."""
    total = len(args) + (large_bytes is not None)
    head = [b"*%d\r\n" % total]
    for argument in args:
        data = argument if isinstance(argument, bytes) else str(argument).encode()
        head.append(b"$%d\r\n%b\r\n" % (len(data), data))
    if large_bytes is None:
        return sock.sendall(b"".join(head))
    sock.sendall(b"".join(head) + b"$%d\r\n" % large_bytes)
    send_blocks(sock, large_bytes, pause_s)
    sock.sendall(b"\r\n")


def send_blocks(sock, size, pause_s=0.0):
    assert size % BLOCK_BYTES == 0
    for number in range(size // BLOCK_BYTES):
        sock.sendall(block(number))
        if pause_s:
            time.sleep(pause_s)


def receive_exactly(sock, count):
    parts, left = [], count
    while left:
        part = sock.recv(min(left, 1 << 18))
        assert part, "the server hung up"
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def receive_line(sock):
    line = b""
    while not line.endswith(b"\r\n"):
        line += receive_exactly(sock, 1)
    return line[:-2]


def receive_bulk(sock):
    header = receive_line(sock)
    assert header.startswith(b"$"), header
    return receive_exactly(sock, int(header[1:]) + 2)[:-2]


def receive_value(sock, size, pause_s=0.0, expected=block):
    """Receives a bulk string of `size` bytes and compares it block by block."""
    header = receive_line(sock)
    assert header == b"$%d" % size, header
    for number in range(size // BLOCK_BYTES):
        assert receive_exactly(sock, BLOCK_BYTES) == expected(number), f"block {number} differs"
        if pause_s:
            time.sleep(pause_s)
    assert receive_exactly(sock, 2) == b"\r\n"


def store(server, key, size):
    """SET key to `size` bytes."""
    with slow_socket(server, buffer_bytes=4 * MB) as sock:
        send_command(sock, "SET", key, large_bytes=size)
        assert receive_line(sock) == b"+OK"
