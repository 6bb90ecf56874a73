// bullmq against a server: bullmq.js port. Jobs that wait, fail, come back, depend on others, repeat; and their events.
import assert from 'node:assert/strict';
import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import { waitFor } from './messages.js';

const connection = { port: Number(process.argv[2]), host: '127.0.0.1', maxRetriesPerRequest: null };
const queue = new Queue('smoke', { connection });
const events = new QueueEvents('smoke', { connection });
const progress = [];
const order = [];
events.on('progress', ({ data }) => progress.push(data));
await events.waitUntilReady();

const work = {
  add: ({ data: [a, b] }) => a + b,
  thirdTime: ({ attemptsMade }) => { if (attemptsMade < 2) throw new Error('not yet'); return attemptsMade; },
  fail: () => { throw new Error('on purpose'); },
  steps: async (job) => { for (const step of [25, 50, 100]) await job.updateProgress(step); return 'done'; },
  note: ({ data }) => { order.push(data); },
  total: async (job) => Object.values(await job.getChildrenValues()).reduce((sum, value) => sum + value, 0),
  tick: () => { order.push('tick'); },
};
const result = (job) => job.waitUntilFinished(events, 40000);

await queue.pause();
await queue.addBulk(['low', 'high', 'middle'].map((data, n) => ({ name: 'note', data, opts: { priority: [9, 1, 5][n] } })));
assert.deepEqual(await queue.getJobCounts('prioritized', 'paused'), { prioritized: 3, paused: 0 });
const worker = new Worker('smoke', async (job) => work[job.name](job), { connection, drainDelay: 1, concurrency: 1 });
worker.on('error', (error) => { console.error(error); process.exit(1); });
await queue.resume();
await waitFor(() => order.length === 3, 'three jobs');
assert.deepEqual(order.splice(0), ['high', 'middle', 'low']);

assert.equal(await result(await queue.add('add', [2, 3])), 5);
const began = Date.now();
assert.equal(await result(await queue.add('add', [1, 2], { delay: 800 })), 3);
assert.ok(Date.now() - began >= 800);
assert.equal(await result(await queue.add('thirdTime', {}, { attempts: 5, backoff: { type: 'fixed', delay: 50 } })), 2);
const failing = await queue.add('fail');
await assert.rejects(result(failing), /on purpose/);
assert.equal(await failing.getState(), 'failed');
assert.equal(await result(await queue.add('steps')), 'done');
await waitFor(() => progress.length === 3, 'the progress');
assert.deepEqual(progress, [25, 50, 100]);
const sums = await queue.addBulk(Array.from({ length: 100 }, (_, n) => ({ name: 'add', data: [n, n] })));
assert.deepEqual(await Promise.all(sums.map(result)), Array.from({ length: 100 }, (_, n) => 2 * n));

const flows = new FlowProducer({ connection });
const children = Array.from({ length: 10 }, (_, n) => ({ name: 'add', queueName: 'smoke', data: [n, 1] }));
const { job: parent } = await flows.add({ name: 'total', queueName: 'smoke', children });
assert.equal(await result(parent), 55);

await queue.upsertJobScheduler('every', { every: 200 }, { name: 'tick' });
await waitFor(() => order.length >= 2, 'two ticks');
assert.ok(await queue.removeJobScheduler('every'));
assert.equal((await queue.add('add', [1, 1], { jobId: 'once', delay: 60000 })).id, 'once');
await queue.add('add', [1, 1], { jobId: 'once', delay: 60000 });
assert.equal(await queue.getDelayedCount(), 1);
assert.ok((await queue.getCompletedCount()) > 110);
await queue.obliterate({ force: true });
await Promise.all([worker, flows, events, queue].map((each) => each.close()));
console.log('bullmq: ok');
