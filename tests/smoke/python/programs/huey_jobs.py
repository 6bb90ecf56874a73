"""huey: plain, scheduled, repeated and retried tasks, results, priorities, a lock, a pipeline, revoking."""

import time

import redis
from huey import PriorityRedisHuey
from huey.exceptions import TaskException
from worker import WAIT_SECONDS, port, wait_for, worker

huey = PriorityRedisHuey("smoke", port=port())
client = redis.Redis(port=port())


@huey.task()
def add(a, b):
    return a + b


@huey.task(retries=3, retry_delay=0)
def third_time(key):
    tries = client.incr(key)
    if tries < 3:
        raise RuntimeError("not yet")
    return tries


@huey.task()
@huey.lock_task("smoke-lock")
def locked():
    return "alone"


@huey.task()
def note(name):
    client.rpush("smoke:order", name)


@huey.periodic_task(lambda moment: True)
def periodic():
    client.incr("smoke:periodic")


def get(result):
    return result.get(blocking=True, timeout=WAIT_SECONDS)


def get_of_retried(result):
    """Each try that fails is a result, too, until the next one has ended."""
    while True:
        try:
            return get(result)
        except TaskException:
            result.reset()


def main():
    # Queued before anybody works: the more urgent one is taken first.
    for name, priority in (("low", 1), ("high", 9), ("middle", 5)):
        huey.enqueue(note.s(name, priority=priority))
    with worker("huey.bin.huey_consumer", "huey_jobs.huey", "-w", "1", "-s", "1"):
        wait_for(lambda: client.llen("smoke:order") == 3, "the queued tasks")
        assert client.lrange("smoke:order", 0, -1) == [b"high", b"middle", b"low"]
        assert get(add(2, 3)) == 5
        began = time.monotonic()
        assert get(add.schedule((1, 2), delay=2)) == 3
        assert time.monotonic() - began >= 1.0  # times of huey are whole seconds
        assert get_of_retried(third_time("smoke:tries")) == 3
        assert get(huey.enqueue(add.s(1, 2).then(add, 3).then(add, 4))) == [3, 6, 10]
        assert [get(result) for result in [add(n, n) for n in range(50)]] == [2 * n for n in range(50)]
        assert get(locked()) == "alone"
        with huey.lock_task("smoke-lock"):
            try:
                get(locked())
                raise AssertionError("the lock did not hold")
            except TaskException as error:
                assert "TaskLockedException" in str(error)
        revoked = add.schedule((1, 1), delay=1)
        revoked.revoke()
        wait_for(lambda: huey.scheduled_count() == 0 and huey.pending_count() == 0, "the revoked task")
        assert revoked.get() is None
        wait_for(lambda: client.get("smoke:periodic") is not None, "the periodic task")
    print("huey: ok")


if __name__ == "__main__":
    import huey_jobs  # the worker's name for the tasks

    huey_jobs.main()
