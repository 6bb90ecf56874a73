"""Random bit commands on strings around the sizes at which Ingot cuts them into pieces."""

import os
import random

SEED = int(os.environ.get("INGOT_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
COUNT = int(os.environ.get("INGOT_RANDOM_COMMANDS", "20000")) // 5
DEPTH = 50
PIECE_BITS = 16384 * 8
KEYS = ["a", "b", "c", "d"]


class Chance(random.Random):
    def bit(self):
        kind = self.random()
        if kind < 0.4:
            return self.randrange(200)
        if kind < 0.8:
            return max(0, PIECE_BITS * self.randint(0, 9) + self.randint(-70, 70))
        return self.randrange(PIECE_BITS * 10)

    def index(self, unit):
        at = self.bit() // unit + self.randint(-2, 2)
        return -at if self.random() < 0.4 else at

    def field(self):
        return f"i{self.randint(1, 64)}" if self.random() < 0.5 else f"u{self.randint(1, 63)}"

    def number(self):
        bits = self.randint(0, 63)
        return self.randint(-(1 << bits), (1 << bits) - 1)

    def operations(self, reads):
        for _ in range(self.randint(1, 5)):
            offset = f"#{self.randrange(40)}" if self.random() < 0.3 else self.bit()
            kind = 0 if reads else self.random()
            if self.random() < 0.3:
                yield from ["OVERFLOW", self.choice(["WRAP", "SAT", "FAIL"])]
            if kind < 0.4:
                yield from ["GET", self.field(), offset]
            else:
                yield from [self.choice(["SET", "INCRBY"]), self.field(), offset, self.number()]

    def range_words(self):
        words = [self.index(1), self.index(1)]
        unit = self.choice(["BYTE", "BIT", None])
        if unit != "BIT":
            words = [self.index(8), self.index(8)]
        return words + ([unit] if unit else [])

    def command(self):
        key = self.choice(KEYS)
        kind = self.randrange(12)
        if kind < 3:
            return ["SETBIT", key, self.bit(), self.randrange(2)]
        if kind == 3:
            return ["GETBIT", key, self.bit()]
        if kind == 4:
            return ["BITCOUNT", key] + (self.range_words() if self.random() < 0.9 else [])
        if kind == 5:
            words = self.range_words()
            return ["BITPOS", key, self.randrange(2)] + words[: self.choice([0, 1, 2, 3])]
        if kind < 8:
            return ["BITFIELD", key, *self.operations(False)]
        if kind == 8:
            return ["BITFIELD_RO", key, *self.operations(True)]
        if kind == 9:
            name = self.choice(["AND", "OR", "XOR", "NOT"])
            sources = [self.choice(KEYS) for _ in range(1 if name == "NOT" else self.randint(1, 3))]
            return ["BITOP", name, key, *sources]
        if kind == 10:
            return ["GET", key]
        if self.random() < 0.3:
            return ["DEL", key]
        fill = self.choice([b"\x00", b"\xff", b"\x5a"])
        return ["SETRANGE", key, self.bit() // 8, fill * self.randrange(40000)]


def test_random_bits(empty_pair):
    chance = Chance(SEED)
    clients = [server.client(2, timeout=30.0) for server in empty_pair.servers]
    for _ in range(COUNT // DEPTH):
        batch = [chance.command() for _ in range(DEPTH)]
        replies = [client.pipeline(batch) for client in clients]
        for words, expected, actual in zip(batch, *replies):
            assert expected == actual, f"seed {SEED}: {[str(word)[:60] for word in words]}"
    for client in clients:
        client.close()
