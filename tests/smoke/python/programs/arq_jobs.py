"""arq: asynchronous jobs with results, delays, retries, a fixed id, aborting, and one by the clock."""

import asyncio
import time

from arq import create_pool, cron
from arq.connections import RedisSettings
from arq.jobs import JobStatus
from arq.worker import Retry
from worker import WAIT_SECONDS, port, worker

SETTINGS = RedisSettings(port=port())


async def add(ctx, a, b):
    return a + b


async def third_time(ctx):
    if ctx["job_try"] < 3:
        raise Retry(defer=0.05)
    return ctx["job_try"]


async def fail(ctx):
    raise ValueError("on purpose")


async def sleep(ctx):
    await asyncio.sleep(600)


async def tick(ctx):
    await ctx["redis"].incr("smoke:ticks")


class WorkerSettings:
    functions = [add, third_time, fail, sleep]
    cron_jobs = [cron(tick, second=set(range(60)))]
    redis_settings = SETTINGS
    poll_delay = 0.05
    allow_abort_jobs = True


async def main():
    pool = await create_pool(SETTINGS)

    async def result(name, *arguments, **options):
        job = await pool.enqueue_job(name, *arguments, **options)
        return await job.result(timeout=WAIT_SECONDS, poll_delay=0.02)

    with worker("arq", "arq_jobs.WorkerSettings"):
        assert await result("add", 2, 3) == 5
        began = time.monotonic()
        assert await result("add", 1, 2, _defer_by=1) == 3
        assert time.monotonic() - began >= 0.9
        assert await result("third_time") == 3
        sums = await asyncio.gather(*[result("add", n, n) for n in range(50)])
        assert sums == [2 * n for n in range(50)]
        try:
            await result("fail")
            raise AssertionError("the job did not fail")
        except ValueError as error:
            assert str(error) == "on purpose"
        long = await pool.enqueue_job("sleep", _job_id="once")
        assert await pool.enqueue_job("sleep", _job_id="once") is None
        while await long.status() != JobStatus.in_progress:
            await asyncio.sleep(0.02)
        assert await long.abort(timeout=WAIT_SECONDS, poll_delay=0.02)
        while not await pool.get("smoke:ticks"):
            await asyncio.sleep(0.02)
    await pool.aclose()
    print("arq: ok")


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(), WAIT_SECONDS))
