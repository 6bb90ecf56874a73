"""RDB files in every encoding that some version of Redis wrote, by hand: there is only one redis-server to write them.

    file = RdbFile(version=6)
    file.key("k", *ziplist_hash([("f", "v")]))
    file.finish()    # -> bytes, with the checksum

Each function answers (type, body) for RdbFile.key(). The forms are those of Redis' rdb.c; ziplists, zipmaps, intsets and
listpacks are made entry by entry, integers in each of their widths.
"""

import struct

POLYNOMIAL = 0x95AC9329AC4BC9B5  # of 0xad93d23594c935a9, reflected


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = _crc_table()


def crc64(data, crc=0):
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc


def raw(value):
    return value if isinstance(value, bytes) else str(value).encode()


def length(number):
    if number < 1 << 6:
        return bytes([number])
    if number < 1 << 14:
        return bytes([0x40 | number >> 8, number & 255])
    if number < 1 << 32:
        return b"\x80" + struct.pack(">I", number)
    return b"\x81" + struct.pack(">Q", number)


def string(value):
    value = raw(value)
    return length(len(value)) + value


def int_string(number):
    """As Redis writes short integers."""
    for code, (form, bits) in enumerate((("<b", 8), ("<h", 16), ("<i", 32))):
        if -(1 << bits - 1) <= number < 1 << bits - 1:
            return bytes([0xC0 | code]) + struct.pack(form, number)
    return string(number)


def lzf_string(value):
    """Compressed by somebody who knows literals and one back reference: for runs of one byte."""
    value = raw(value)
    assert len(set(value)) == 1 and len(value) > 9
    packed, left = bytes([0, value[0]]), len(value) - 1
    while left >= 3:
        run = min(left, 264)
        packed += bytes([run - 2 << 5, 0]) if run <= 8 else bytes([7 << 5, run - 9, 0])
        left -= run
    packed += b"".join(bytes([0, value[0]]) for _ in range(left))
    return b"\xc3" + length(len(packed)) + length(len(value)) + packed


def number_of(value):
    try:
        number = int(value)
    except ValueError:
        return None
    return number if raw(number) == raw(value) and -(1 << 63) <= number < 1 << 63 else None


# --- packed forms


def ziplist(items):
    body, before, tail = b"", 0, 10
    for item in items:
        number, text = number_of(item), raw(item)
        if number is None or len(text) > 20:
            if len(text) < 64:
                head = bytes([len(text)])
            elif len(text) < 1 << 14:
                head = bytes([0x40 | len(text) >> 8, len(text) & 255])
            else:
                head = b"\x80" + struct.pack(">I", len(text))
            entry = head + text
        elif 0 <= number <= 12:
            entry = bytes([0xF1 + number])
        else:
            for code, size in ((0xFE, 1), (0xC0, 2), (0xF0, 3), (0xD0, 4), (0xE0, 8)):
                if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
                    entry = bytes([code]) + number.to_bytes(size, "little", signed=True)
                    break
        entry = (bytes([before]) if before < 254 else b"\xfe" + struct.pack("<I", before)) + entry
        tail = 10 + len(body)
        body += entry
        before = len(entry)
    return struct.pack("<IIH", 11 + len(body), tail, min(len(items), 65535)) + body + b"\xff"


def listpack(items):
    body = b""
    for item in items:
        number, text = number_of(item), raw(item)
        if number is None:
            if len(text) < 64:
                entry = bytes([0x80 | len(text)]) + text
            elif len(text) < 4096:
                entry = bytes([0xE0 | len(text) >> 8, len(text) & 255]) + text
            else:
                entry = b"\xf0" + struct.pack("<I", len(text)) + text
        elif 0 <= number <= 127:
            entry = bytes([number])
        elif -4096 <= number < 4096:
            entry = bytes([0xC0 | number >> 8 & 31, number & 255])
        else:
            for code, size in ((0xF1, 2), (0xF2, 3), (0xF3, 4), (0xF4, 8)):
                if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
                    entry = bytes([code]) + number.to_bytes(size, "little", signed=True)
                    break
        size, back = len(entry), []
        while not back or size:
            back.insert(0, size & 127)
            size >>= 7
        body += entry + bytes([back[0]] + [part | 128 for part in back[1:]])
    return struct.pack("<IH", 7 + len(body), min(len(items), 65535)) + body + b"\xff"


def zipmap(pairs):
    def sized(value):
        return bytes([len(value)]) if len(value) < 254 else b"\xfe" + struct.pack("<I", len(value))

    body = b""
    for index, (field, value) in enumerate(pairs):
        field, value = raw(field), raw(value)
        unused = index % 3  # bytes that an overwritten value has left
        body += sized(field) + field + sized(value) + bytes([unused]) + value + b"?" * unused
    return bytes([min(len(pairs), 254)]) + body + b"\xff"


def intset(numbers):
    width = max(2 if -(1 << 15) <= n < 1 << 15 else 4 if -(1 << 31) <= n < 1 << 31 else 8 for n in numbers)
    return struct.pack("<II", width, len(numbers)) + b"".join(
        n.to_bytes(width, "little", signed=True) for n in sorted(numbers)
    )


def flat(pairs):
    return [item for pair in pairs for item in pair]


# --- values: (type, body)


def plain(value):
    return 0, string(value)


def plain_list(items):
    return 1, length(len(items)) + b"".join(map(string, items))


def plain_set(members):
    return 2, length(len(members)) + b"".join(map(string, members))


def text_score(score):
    if score == float("inf"):
        return b"\xfe"
    if score == float("-inf"):
        return b"\xff"
    text = b"%.17g" % score
    return bytes([len(text)]) + text


def text_zset(pairs):
    return 3, length(len(pairs)) + b"".join(string(m) + text_score(s) for m, s in pairs)


def plain_hash(pairs):
    return 4, length(len(pairs)) + b"".join(map(string, flat(pairs)))


def double_zset(pairs):
    return 5, length(len(pairs)) + b"".join(string(m) + struct.pack("<d", s) for m, s in pairs)


def zipmap_hash(pairs):
    return 9, string(zipmap(pairs))


def ziplist_list(items):
    return 10, string(ziplist(items))


def intset_set(numbers):
    return 11, string(intset(numbers))


def ziplist_zset(pairs):
    return 12, string(ziplist(flat(pairs)))


def ziplist_hash(pairs):
    return 13, string(ziplist(flat(pairs)))


def quicklist(nodes):
    return 14, length(len(nodes)) + b"".join(string(ziplist(node)) for node in nodes)


def listpack_hash(pairs):
    return 16, string(listpack(flat(pairs)))


def listpack_zset(pairs):
    return 17, string(listpack(flat(pairs)))


def quicklist2(nodes):
    """A node is a list of elements, or one plain element."""
    body = length(len(nodes))
    for node in nodes:
        body += length(2) + string(listpack(node)) if isinstance(node, list) else length(1) + string(node)
    return 18, body


def listpack_set(members):
    return 20, string(listpack(members))


def timed_hash(triples, *, early=False):
    """Fields, values, and when they expire (0: never)."""
    first = min([t for _, _, t in triples if t], default=0)
    body = b"" if early else struct.pack("<Q", first)
    body += length(len(triples))
    for field, value, time in triples:
        body += length(time if early or not time else time - first + 1) + string(field) + string(value)
    return 22 if early else 24, body


def timed_listpack_hash(triples, *, early=False):
    first = min([t for _, _, t in triples if t], default=0)
    return 23 if early else 25, (b"" if early else struct.pack("<Q", first)) + string(listpack(flat(triples)))


def stream(version, entries, *, last, groups=(), added=None, max_deleted=(0, 0)):
    """entries: (ms, seq), [(field, value)]; groups: name, last id, entries read, [(id, delivered, count)], consumers.

    version 1 to 3 is that of the form; a consumer is a name, the time it was seen, and indexes of what is pending.
    """

    def id_bytes(ms_seq):
        return struct.pack(">QQ", *ms_seq)

    body = length(1 if entries else 0)
    if entries:
        master = entries[0][0]
        names = [field for field, _ in entries[0][1]]
        items = [len(entries), 0, len(names), *names, 0]
        for (ms, seq), fields in entries:
            same = [field for field, _ in fields] == names
            items += [2 if same else 0, ms - master[0], seq - master[1]]
            items += [value for _, value in fields] if same else [len(fields), *flat(fields)]
            items.append(len(fields) + 3 if same else 2 * len(fields) + 4)
        body += string(id_bytes(master)) + string(listpack(items))
    body += length(len(entries)) + length(last[0]) + length(last[1])
    if version >= 2:
        first = entries[0][0] if entries else (0, 0)
        body += b"".join(map(length, (*first, *max_deleted, len(entries) if added is None else added)))
    body += length(len(groups))
    for name, group_last, read, pending, consumers in groups:
        body += string(name) + length(group_last[0]) + length(group_last[1])
        if version >= 2:
            body += length(read)
        body += length(len(pending))
        for entry, delivered, count in pending:
            body += id_bytes(entry) + struct.pack("<Q", delivered) + length(count)
        body += length(len(consumers))
        for consumer, seen, owned in consumers:
            body += string(consumer) + struct.pack("<Q", seen)
            if version >= 3:
                body += struct.pack("<Q", seen)
            body += length(len(owned)) + b"".join(id_bytes(pending[i][0]) for i in owned)
    return {1: 15, 2: 19, 3: 21}[version], body


class RdbFile:
    def __init__(self, version=10):
        self.version = version
        self.data = b"REDIS%04d" % version

    def add(self, data):
        self.data += data
        return self

    def aux(self, name, value):
        return self.add(b"\xfa" + string(name) + string(value))

    def function(self, code):
        return self.add(b"\xf5" + string(code))

    def select(self, db, keys=None):
        resize = b"" if keys is None else b"\xfb" + length(keys) + length(0)
        return self.add(b"\xfe" + length(db) + resize)

    def key(self, name, kind, body, *, expire_s=None, expire_ms=None, idle=None, freq=None):
        if expire_s is not None:
            self.add(b"\xfd" + struct.pack("<i", expire_s))
        if expire_ms is not None:
            self.add(b"\xfc" + struct.pack("<q", expire_ms))
        if idle is not None:
            self.add(b"\xf8" + length(idle))
        if freq is not None:
            self.add(b"\xf9" + bytes([freq]))
        return self.add(bytes([kind]) + string(name) + body)

    def finish(self, *, checksum=True):
        self.add(b"\xff")
        if self.version >= 5:
            self.add(struct.pack("<Q", crc64(self.data) if checksum else 0))
        return self.data
