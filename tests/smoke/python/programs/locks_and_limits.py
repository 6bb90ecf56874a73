"""Locks of several packages, held by many threads at once, and rate limits of all strategies of `limits`."""

import threading
import time

import redis
import redis_lock
from limits import RateLimitItemPerMinute, RateLimitItemPerSecond, storage, strategies
from pottery import Redlock
from worker import port

THREADS, ROUNDS = 4, 15
client = redis.Redis(port=port())


def count_under(lock, name):
    """Each round reads and writes back: only who is alone loses no count."""
    failures = []

    def work():
        try:
            for _ in range(ROUNDS):
                with lock():
                    before = int(client.get(name) or 0)
                    time.sleep(0.001)
                    client.set(name, before + 1)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert int(client.get(name)) == THREADS * ROUNDS, name


def expiring_lock():
    first, second = (redis_lock.Lock(client, "smoke:brief", expire=seconds) for seconds in (1, 30))
    assert first.acquire() and not second.acquire(blocking=False)
    began = time.monotonic()
    assert second.acquire(timeout=20) and time.monotonic() - began > 0.5
    try:
        first.release()
        raise AssertionError("released the lock of another")
    except redis_lock.NotAcquired:
        second.extend(10)
        second.release()


def limiting():
    store = storage.storage_from_string(f"redis://127.0.0.1:{port()}/0")
    for strategy in strategies.STRATEGIES.values():
        limiter = strategy(store)
        a_minute = RateLimitItemPerMinute(5)
        name = strategy.__name__
        while time.time() % 60 > 55:  # a fixed window would change on the way
            time.sleep(0.2)
        assert [limiter.hit(a_minute, name, "user") for _ in range(7)] == 5 * [True] + 2 * [False], name
        assert not limiter.test(a_minute, name, "user") and limiter.test(a_minute, name, "another")
        assert limiter.get_window_stats(a_minute, name, "user").remaining == 0
        limiter.clear(a_minute, name, "user")
        assert limiter.hit(a_minute, name, "user")
        a_second = RateLimitItemPerSecond(1)
        assert limiter.hit(a_second, name, "brief")
        time.sleep(2.05)
        assert limiter.hit(a_second, name, "brief"), name


count_under(lambda: client.lock("smoke:lock", timeout=30, sleep=0.002), "smoke:redis-py")
count_under(lambda: redis_lock.Lock(client, "smoke:lock-py", expire=30, auto_renewal=True), "smoke:redis-lock")
count_under(lambda: Redlock(key="smoke:redlock", masters={client}, auto_release_time=30), "smoke:redlock-count")
expiring_lock()
limiting()
print("locks and limits: ok")
