"""rq with its scheduler: jobs with results, dependencies, retries, delays, failures, a stopped one."""

import datetime
import time

import redis
from rq import Queue, Retry
from rq.command import send_stop_job_command
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry
from worker import HERE, port, wait_for, worker


def add(a, b):
    return a + b


def sum_of(*ids):
    with redis.Redis(port=port()) as client:
        return sum(Job.fetch(id, connection=client).return_value() for id in ids)


def third_time(key):
    with redis.Redis(port=port()) as client:
        tries = client.incr(key)
    if tries < 3:
        raise RuntimeError("not yet")
    return tries


def fail():
    raise ValueError("on purpose")


def sleep():
    time.sleep(600)


def finished(job):
    wait_for(lambda: job.get_status(refresh=True) in ("finished", "failed", "stopped"), job.id)
    return job.get_status(), job.return_value(refresh=True)


def main():
    client = redis.Redis(port=port())
    queue = Queue("smoke", connection=client)
    with worker("rq.cli", "worker", "--url", f"redis://127.0.0.1:{port()}", "--path", HERE, "--with-scheduler", "smoke"):
        assert finished(queue.enqueue("rq_jobs.add", 2, 3)) == ("finished", 5)
        parts = [queue.enqueue("rq_jobs.add", n, n) for n in range(4)]
        whole = queue.enqueue("rq_jobs.sum_of", *[job.id for job in parts], depends_on=parts)
        assert finished(whole) == ("finished", 12)
        began = time.monotonic()
        late = queue.enqueue_in(datetime.timedelta(seconds=2), "rq_jobs.add", 1, 2)
        assert finished(late) == ("finished", 3) and time.monotonic() - began >= 1.0
        again = queue.enqueue("rq_jobs.third_time", "smoke:tries", retry=Retry(max=3))
        assert finished(again) == ("finished", 3)
        failed = queue.enqueue("rq_jobs.fail")
        assert finished(failed)[0] == "failed"
        assert "on purpose" in failed.latest_result().exc_string
        assert failed.id in FailedJobRegistry(queue=queue) and whole.id in FinishedJobRegistry(queue=queue)
        stopped = queue.enqueue("rq_jobs.sleep")
        wait_for(lambda: stopped.get_status(refresh=True) == "started", "a start")
        send_stop_job_command(client, stopped.id)  # heard by a thread of the worker that subscribes
        assert finished(stopped)[0] == "stopped"
    print("rq: ok")


if __name__ == "__main__":
    main()
