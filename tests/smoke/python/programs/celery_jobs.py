"""celery with results: plain, delayed, retried, failing and revoked tasks, groups, a chain, a chord, remote control."""

import time

from celery import Celery, chain, chord, group
from worker import WAIT_SECONDS, port, wait_for, worker

app = Celery("celery_jobs", broker=f"redis://127.0.0.1:{port()}/0", backend=f"redis://127.0.0.1:{port()}/1")
app.conf.update(task_acks_late=True, broker_connection_retry_on_startup=True, worker_prefetch_multiplier=2)


@app.task
def add(a, b):
    return a + b


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def third_time(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def fail():
    raise ValueError("on purpose")


def get(result):
    return result.get(timeout=WAIT_SECONDS)


def main():
    with worker("celery", "-A", "celery_jobs", "worker", "-P", "threads", "-c", "4", "-l", "warning", "--without-mingle"):
        assert get(add.delay(2, 3)) == 5
        began = time.monotonic()
        assert get(add.apply_async((1, 2), countdown=1.5, priority=9)) == 3
        assert time.monotonic() - began >= 1.4
        assert get(third_time.delay()) == 2
        assert get(group(add.s(n, n) for n in range(40)).apply_async()) == [2 * n for n in range(40)]
        assert get(chain(add.s(1, 2), add.s(3), add.s(4))()) == 10
        assert get(chord((add.s(n, n) for n in range(20)), total.s())()) == 380
        failed = fail.delay()
        try:
            get(failed)
            raise AssertionError("the task did not fail")
        except ValueError as error:
            assert str(error) == "on purpose" and failed.state == "FAILURE"
        late = add.apply_async((1, 1), countdown=600)
        late.revoke()
        # Each of these is published, and waits for that long to see who answers.
        wait_for(lambda: list((app.control.inspect(timeout=1).ping() or {}).values()) == [{"ok": "pong"}], "a pong")
        wait_for(lambda: any(late.id in ids for ids in (app.control.inspect(timeout=1).revoked() or {}).values()), "revoked")
    print("celery: ok")


if __name__ == "__main__":
    import celery_jobs  # the worker knows the tasks by this name, and not as __main__'s

    celery_jobs.main()
