// bull against a server: bull.js port. Jobs by name, priorities, delays, retries, a rate limit, repeating, global events.
import assert from 'node:assert/strict';
import Bull from 'bull';
import { waitFor } from './messages.js';

const redis = { port: Number(process.argv[2]), host: '127.0.0.1' };
const queue = new Bull('smoke', { redis, settings: { stalledInterval: 500, guardInterval: 200 } });
const observer = new Bull('smoke', { redis }); // hears by pub/sub what happens elsewhere
const order = [];
const finished = [];
observer.on('global:completed', (id) => finished.push(id));
await Promise.all([queue.isReady(), observer.isReady()]);

await queue.pause();
for (const [name, priority] of [['low', 9], ['high', 1], ['middle', 5]]) await queue.add('note', name, { priority });
queue.process('note', async ({ data }) => { order.push(data); });
queue.process('add', async ({ data: [a, b] }) => a + b);
queue.process('fail', async () => { throw new Error('on purpose'); });
queue.process('thirdTime', async ({ attemptsMade }) => { if (attemptsMade < 2) throw new Error('not yet'); return attemptsMade; });
queue.process('tick', async () => { order.push('tick'); });
await queue.resume();
await waitFor(() => order.length === 3, 'three jobs');
assert.deepEqual(order.splice(0), ['high', 'middle', 'low']);

assert.equal(await (await queue.add('add', [2, 3])).finished(), 5);
const began = Date.now();
assert.equal(await (await queue.add('add', [1, 2], { delay: 800 })).finished(), 3);
assert.ok(Date.now() - began >= 790);
assert.equal(await (await queue.add('thirdTime', {}, { attempts: 5, backoff: 50 })).finished(), 2);
const failing = await queue.add('fail');
await assert.rejects(failing.finished(), /on purpose/);
assert.ok(await failing.isFailed());
const sums = await Promise.all(Array.from({ length: 60 }, (_, n) => queue.add('add', [n, n])));
assert.deepEqual(await Promise.all(sums.map((job) => job.finished())), sums.map((_, n) => 2 * n));
await waitFor(() => finished.length >= 65, 'global events');
await queue.add('tick', null, { repeat: { every: 200 } });
await waitFor(() => order.length >= 2, 'two ticks');
assert.equal((await queue.getRepeatableJobs()).length, 1);
await queue.removeRepeatable('tick', { every: 200 });
const counts = await queue.getJobCounts();
assert.ok(counts.completed >= 67 && counts.failed === 1, JSON.stringify(counts));
assert.equal((await queue.clean(0, 'failed')).length, 1);

const limited = new Bull('smoke-limited', { redis, limiter: { max: 2, duration: 500 } });
limited.process(async () => Date.now());
const times = await Promise.all((await Promise.all([1, 2, 3, 4, 5].map(() => limited.add({})))).map((job) => job.finished()));
assert.ok(Math.max(...times) - Math.min(...times) > 400, times);
await Promise.all([queue, observer, limited].map((each) => each.close()));
console.log('bull: ok');
