// bee-queue against a server: bee-queue.js port. Results, delays, retries, failures and progress come by pub/sub.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import BeeQueue from 'bee-queue';

const redis = { port: Number(process.argv[2]), host: '127.0.0.1' };
const queue = new BeeQueue('smoke', { redis, isWorker: false });
const worker = new BeeQueue('smoke', { redis, activateDelayedJobs: true, getEvents: false });
await Promise.all([queue.ready(), worker.ready()]);
let tries = 0;
worker.process(4, async (job) => {
  const { kind, a, b } = job.data;
  if (kind === 'fail') throw new Error('on purpose');
  if (kind === 'thirdTime' && ++tries < 3) throw new Error('not yet');
  if (kind === 'progress') job.reportProgress({ half: true });
  return a + b;
});

const result = async (job) => {
  const signal = AbortSignal.timeout(40000);
  const done = once(job, 'succeeded', { signal });
  await job.save();
  return (await done)[0];
};
assert.equal(await result(queue.createJob({ a: 2, b: 3 })), 5);
const began = Date.now();
assert.equal(await result(queue.createJob({ a: 1, b: 2 }).delayUntil(Date.now() + 800)), 3);
assert.ok(Date.now() - began >= 790);
assert.equal(await result(queue.createJob({ kind: 'thirdTime', a: 1, b: 1 }).retries(4).backoff('fixed', 20)), 2);
assert.equal(tries, 3);
const reporting = queue.createJob({ kind: 'progress', a: 1, b: 1 });
const progress = once(reporting, 'progress');
await result(reporting);
assert.deepEqual((await progress)[0], { half: true });
const failing = queue.createJob({ kind: 'fail' });
const failed = once(failing, 'failed');
await failing.save();
assert.match((await failed)[0].message, /on purpose/);
const sums = Array.from({ length: 100 }, (_, n) => queue.createJob({ a: n, b: n }));
const results = sums.map((job) => once(job, 'succeeded', { signal: AbortSignal.timeout(40000) }));
assert.equal((await queue.saveAll(sums)).size, 0);
assert.deepEqual((await Promise.all(results)).map(([value]) => value), sums.map((_, n) => 2 * n));
const health = await queue.checkHealth();
assert.deepEqual([health.waiting, health.active, health.failed, health.delayed], [0, 0, 1, 0]);
assert.ok(health.succeeded >= 104);
await queue.destroy();
await Promise.all([queue.close(), worker.close()]);
console.log('bee-queue: ok');
