"""dramatiq with results: plain, delayed, retried and dead messages, a pipeline, a group with a barrier, rate limits."""

import time

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits import ConcurrentRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as LimitBackend
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from worker import WAIT_SECONDS, port, wait_for, worker

client = redis.Redis(port=port())
limits = LimitBackend(client=client)
broker = RedisBroker(port=port())
broker.add_middleware(Results(backend=RedisBackend(client=client)))
broker.add_middleware(GroupCallbacks(limits))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def add(a, b):
    return a + b


@dramatiq.actor(store_results=True, max_retries=5, min_backoff=20, max_backoff=50)
def third_time(key):
    tries = client.incr(key)
    if tries < 3:
        raise RuntimeError("not yet")
    return tries


@dramatiq.actor(max_retries=0)
def fail():
    raise ValueError("on purpose")


@dramatiq.actor
def all_done(key):
    client.set(key, "done")


def get(message):
    return message.get_result(block=True, timeout=WAIT_SECONDS * 1000)


def rate_limits():
    mutex = ConcurrentRateLimiter(limits, "smoke:mutex", limit=1)
    with mutex.acquire():
        with mutex.acquire(raise_on_failure=False) as acquired:
            assert not acquired
    with mutex.acquire(raise_on_failure=False) as acquired:
        assert acquired
    window = WindowRateLimiter(limits, "smoke:window", limit=3, window=60)
    taken = 0
    for _ in range(5):
        with window.acquire(raise_on_failure=False) as acquired:
            taken += acquired
    assert taken == 3, taken


def main():
    with worker("dramatiq", "dramatiq_jobs", "--processes", "1", "--threads", "4"):
        assert get(add.send(2, 3)) == 5
        began = time.monotonic()
        assert get(add.send_with_options(args=(1, 2), delay=1000)) == 3
        assert time.monotonic() - began >= 0.9
        assert get(third_time.send("smoke:tries")) == 3
        pipeline = (add.message(1, 2) | add.message(3) | add.message(4)).run()
        assert get(pipeline) == 10
        group = dramatiq.group(add.message(n, n) for n in range(40))
        group.add_completion_callback(all_done.message("smoke:group"))
        group.run()
        assert list(group.get_results(block=True, timeout=WAIT_SECONDS * 1000)) == [2 * n for n in range(40)]
        wait_for(lambda: client.get("smoke:group") == b"done", "the group's callback")
        fail.send()
        wait_for(lambda: client.zcard("dramatiq:default.XQ") == 1, "the dead letter")
        broker.join("default", timeout=WAIT_SECONDS * 1000)
    rate_limits()
    print("dramatiq: ok")


if __name__ == "__main__":
    import dramatiq_jobs  # the worker's name for the actors

    dramatiq_jobs.main()
