"""Changes a record in a log file of LevelDB or RocksDB, checksum included.

Both have one layout: blocks of 32 KB; in them records of crc32c (masked, 4) | length (2) | type (1) |
payload, the crc over type and payload. RocksDB's logs hold no header beyond that unless logs are recycled.
"""

import struct

BLOCK_BYTES = 32768
HEADER_BYTES = 7


def _table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def patch_log(path, old, new):
    """Replaces `old` by `new` (as long) in every record of the file; how many records changed."""
    assert len(old) == len(new)
    data = bytearray(path.read_bytes())
    at = changed = 0
    while at + HEADER_BYTES <= len(data):
        left = BLOCK_BYTES - at % BLOCK_BYTES
        crc, length, kind = struct.unpack_from("<IHB", data, at)
        if left < HEADER_BYTES or kind == 0:
            at += left  # the rest of a block is padding
            continue
        end = at + HEADER_BYTES + length
        record = bytes(data[at + 6 : end])
        assert crc == masked_crc32c(record), f"{path}: not a log record at {at}"
        if old in record:
            record = record.replace(old, new)
            struct.pack_into("<I", data, at, masked_crc32c(record))
            data[at + 6 : end] = record
            changed += 1
        at = end
    path.write_bytes(data)
    return changed
