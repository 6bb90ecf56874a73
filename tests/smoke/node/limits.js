// rate-limiter-flexible and redlock against a server: limits.js port. Their scripts decide, many callers at once.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import Redis from 'ioredis';
import { BurstyRateLimiter, RateLimiterRedis } from 'rate-limiter-flexible';
import Redlock from 'redlock';
import { createClient } from 'redis';

const port = Number(process.argv[2]);
const storeClient = new Redis({ port, host: '127.0.0.1', enableOfflineQueue: false, lazyConnect: true });
await storeClient.connect();

const outcomes = async (limiter, count) => (await Promise.allSettled(Array.from({ length: count }, () => limiter.consume('user'))))
  .map(({ status }) => status === 'fulfilled').reduce((taken, ok) => taken + ok, 0);

const limiter = new RateLimiterRedis({ storeClient, keyPrefix: 'smoke', points: 5, duration: 1 });
assert.equal(await outcomes(limiter, 20), 5);
const refused = await limiter.consume('user').catch((reason) => reason);
assert.ok(refused.msBeforeNext > 0 && refused.msBeforeNext <= 1000 && refused.remainingPoints === 0);
await sleep(refused.msBeforeNext + 50);
assert.equal((await limiter.consume('user')).remainingPoints, 4);
await limiter.block('user', 60);
assert.equal(await outcomes(limiter, 3), 0);
assert.ok(await limiter.delete('user'));
assert.equal(await limiter.get('user'), null);
await limiter.penalty('user', 2);
await limiter.reward('user', 1);
assert.equal((await limiter.get('user')).consumedPoints, 1);
const blocking = new RateLimiterRedis({ storeClient, keyPrefix: 'blocking', points: 2, duration: 1, blockDuration: 60 });
assert.equal(await outcomes(blocking, 5), 2);
assert.ok((await blocking.get('user')).msBeforeNext > 50_000);
const bursty = new BurstyRateLimiter(
  new RateLimiterRedis({ storeClient, keyPrefix: 'steady', points: 2, duration: 60 }),
  new RateLimiterRedis({ storeClient, keyPrefix: 'burst', points: 3, duration: 60 }));
assert.equal(await outcomes(bursty, 10), 5);
const nodeRedis = await createClient({ socket: { port, host: '127.0.0.1' } }).connect();
const other = new RateLimiterRedis({ storeClient: nodeRedis, useRedisPackage: true, keyPrefix: 'node-redis', points: 7, duration: 60 });
assert.equal(await outcomes(other, 20), 7);
await nodeRedis.close();

const redlock = new Redlock([storeClient], { retryCount: 2000, retryDelay: 5, retryJitter: 5 });
let held = 0;
await Promise.all(Array.from({ length: 20 }, async () => {
  let lock = await redlock.lock('smoke:lock', 30000);
  assert.equal(++held, 1);
  const before = Number(await storeClient.get('sum'));
  await storeClient.set('sum', before + 1);
  lock = await lock.extend(30000);
  --held;
  await lock.unlock();
}));
assert.equal(await storeClient.get('sum'), '20');
await redlock.lock('smoke:brief', 200);
const began = Date.now();
const second = await redlock.lock('smoke:brief', 1000);
assert.ok(Date.now() - began > 100);
await second.unlock();
assert.equal(await storeClient.exists('smoke:brief'), 0);
await storeClient.quit();
console.log('rate-limiter-flexible and redlock: ok');
