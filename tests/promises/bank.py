"""Accounts, tellers who move money between them in every way that is atomic, and auditors who sum them all in every way
that sees one state.

Each teller writes a line for a transfer into a journal of his own, in the transfer. So what the accounts hold must be what
the journals say, always: half a transfer, one that was lost, or one that counted twice shows, also after a crash.
"""

from support.resp import CLOSED

EACH = 1000
MOVE = """
redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('INCRBY', KEYS[2], ARGV[1])
return redis.call('RPUSH', KEYS[3], ARGV[2])"""
SUM = "local sum = 0 for _, key in ipairs(KEYS) do sum = sum + redis.call('GET', key) end return sum"
LIBRARY = f"""#!lua name=bank
redis.register_function('move', function(KEYS, ARGV) {MOVE} end)
redis.register_function{{function_name='total', callback=function(KEYS, ARGV) {SUM} end, flags={{'no-writes'}}}}"""


class Gone(Exception):
    """The server was killed."""


def answered(reply):
    if reply == CLOSED:
        raise Gone
    assert not reply.is_error(), reply
    return reply


class Bank:
    def __init__(self, names):
        self.names = names
        self.total = EACH * len(names)

    def open(self, client):
        for begin in range(0, len(self.names), 500):
            answered(client.call("MSET", *(word for name in self.names[begin : begin + 500] for word in (name, EACH))))
        answered(client.call("FUNCTION", "LOAD", LIBRARY))

    def check(self, client, tellers):
        """The accounts are what the journals of all tellers say."""
        expected = dict.fromkeys(self.names, EACH)
        for teller in tellers:
            for line in teller.journal(client):
                _, source, target, amount = line.decode().split()
                expected[source] -= int(amount)
                expected[target] += int(amount)
        found = {name: int(value) for name, value in zip(self.names, self._balances(client), strict=True)}
        assert found == expected
        assert sum(found.values()) == self.total

    def _balances(self, client):
        return [reply.value for reply in answered(client.call("MGET", *self.names)).value]

    # --- what an auditor may do; each answers the balances, or their sum

    def by_mget(self, client):
        return self._balances(client)

    def by_exec(self, client):
        commands = [("MULTI",), *(("GET", name) for name in self.names), ("EXEC",)]
        return [reply.value for reply in answered(client.pipeline(commands)[-1]).value]

    def by_eval_ro(self, client):
        return [answered(client.call("EVAL_RO", SUM, len(self.names), *self.names)).value]

    def by_eval(self, client):
        return [answered(client.call("EVAL", SUM, len(self.names), *self.names)).value]

    def by_fcall_ro(self, client):
        return [answered(client.call("FCALL_RO", "total", len(self.names), *self.names)).value]

    def by_exec_of_scripts(self, client):
        """All parts of a transaction see the same, one that writes among them."""
        commands = [("MULTI",), ("MGET", *self.names), ("SET", "audited", 1), ("EVAL_RO", SUM, len(self.names), *self.names),
                    ("FCALL", "total", len(self.names), *self.names), ("EXEC",)]  # fmt: skip
        balances, _, *sums = answered(client.pipeline(commands)[-1]).value
        values = [reply.value for reply in balances.value]
        assert {sum(map(int, values))} == {reply.value for reply in sums}
        return values

    def by_watch(self, client):
        """Nothing has changed between single reads if EXEC says so. None: something has."""
        commands = [("WATCH", *self.names), *(("GET", name) for name in self.names), ("MULTI",), ("PING",), ("EXEC",)]
        replies = [answered(reply) for reply in client.pipeline(commands)]
        return None if replies[-1].is_null() else [reply.value for reply in replies[1:-3]]

    HOW = (by_mget, by_exec, by_eval_ro, by_eval, by_fcall_ro, by_exec_of_scripts, by_watch)

    def audit(self, server, how, counts, stop):
        """Sums all accounts until `stop`, or until the server has gone."""
        try:
            with server.client(timeout=60) as client:
                while not stop.is_set():
                    values = how(self, client)
                    if values is None:
                        continue
                    assert sum(map(int, values)) == self.total, how.__name__
                    counts[how.__name__] = counts.get(how.__name__, 0) + 1
        except (Gone, ConnectionError):
            return


class Teller:
    """One connection's transfers. One thread."""

    def __init__(self, bank, name, how, chance):
        self.bank, self.how, self.chance = bank, how, chance
        self.key = f"journal:{name}"
        self.sent = self.done = 0  # transfers, the answered ones
        self.conflicts = 0

    def work(self, server, stop):
        """Until `stop`, or until the server has gone."""
        try:
            with server.client(timeout=60) as client:
                while not stop.is_set():
                    self.how(self, client)
        except (Gone, ConnectionError):
            return

    def journal(self, client):
        """Its lines; all that was answered is among them, and nothing that was not sent."""
        lines = [reply.value for reply in answered(client.call("LRANGE", self.key, 0, -1)).value]
        assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
        assert self.done <= len(lines) <= self.sent, (self.how.__name__, self.done, len(lines), self.sent)
        self.sent = self.done = len(lines)
        return lines

    def _transfer(self):
        self.sent += 1
        source, target = self.chance.sample(self.bank.names, 2)
        amount = self.chance.randrange(50)
        return source, target, amount, f"{self.sent} {source} {target} {amount}"

    def _all(self, client, commands, each):
        """Sends them all; every `each`th reply is that of a transfer."""
        replies = client.pipeline(commands)
        for reply in replies[each - 1 :: each]:
            answered(reply)
            self.done += 1
        if CLOSED in replies:
            raise Gone

    def by_exec(self, client):
        commands = []
        for _ in range(self.chance.randint(1, 4)):
            source, target, amount, line = self._transfer()
            commands += [("MULTI",), ("DECRBY", source, amount), ("INCRBY", target, amount), ("RPUSH", self.key, line), ("EXEC",)]
        self._all(client, commands, 5)

    def by_watch(self, client):
        source, target, amount, line = self._transfer()
        while True:
            replies = client.pipeline([("WATCH", source, target), ("MGET", source, target)])
            old = [int(reply.value) for reply in answered(replies[-1]).value]
            commands = [("MULTI",), ("SET", source, old[0] - amount), ("SET", target, old[1] + amount), ("RPUSH", self.key, line),
                        ("EXEC",)]  # fmt: skip
            if not answered(client.pipeline(commands)[-1]).is_null():
                break
            self.conflicts += 1
        self.done += 1

    def _scripts(self, client, *head):
        commands = []
        for _ in range(self.chance.randint(1, 4)):
            source, target, amount, line = self._transfer()
            commands.append((*head, 3, source, target, self.key, amount, line))
        self._all(client, commands, 1)

    def by_eval(self, client):
        self._scripts(client, "EVAL", MOVE)

    def by_fcall(self, client):
        self._scripts(client, "FCALL", "move")

    def by_exec_of_scripts(self, client):
        """Two transfers together, the second one's failure included: what a script did before its error stays."""
        source, target, amount, line = self._transfer()
        fails = MOVE.replace("return", "local length =") + " error('after all')"
        commands = [("MULTI",), ("EVAL", fails, 3, source, target, self.key, amount, line), ("EXEC",)]
        reply = answered(client.pipeline(commands)[-1])
        assert reply.value[0].is_error() and b"after all" in reply.value[0].value
        self.done += 1

    HOW = (by_exec, by_watch, by_eval, by_fcall, by_exec_of_scripts)
