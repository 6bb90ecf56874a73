// ioredis against a server: ioredis.js port protocol, port of TLS, certificate of its CA. It speaks RESP2 alone.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import Redis from 'ioredis';
import { waitFor } from './messages.js';

const [port, , tlsPort] = process.argv.slice(2).map(Number);
const caFile = process.argv[5];
const options = { port, host: '127.0.0.1', maxRetriesPerRequest: 1, retryStrategy: null };
const r = new Redis({ ...options, connectionName: 'smoke' });
const other = new Redis(options);

async function pipelines() {
  const pipe = r.pipeline();
  for (let n = 0; n < 1000; ++n) pipe.set(`p:${n}`, n).get(`p:${n}`);
  const answers = await pipe.exec();
  assert.deepEqual(answers, Array.from({ length: 1000 }, (_, n) => [[null, 'OK'], [null, `${n}`]]).flat());
  const [, [error], [, value]] = await r.pipeline().set('text', 'abc').incr('text').get('text').exec();
  assert.match(error.message, /not an integer/);
  assert.equal(value, 'abc');
  const automatic = new Redis({ ...options, enableAutoPipelining: true });
  const numbers = await Promise.all(Array.from({ length: 500 }, () => automatic.incr('automatic')));
  assert.deepEqual(numbers, Array.from({ length: 500 }, (_, n) => n + 1));
  automatic.disconnect();
}

async function transactions() {
  assert.deepEqual(await r.multi().set('t', 1).incr('t').exec(), [[null, 'OK'], [null, 2]]);
  await r.watch('t');
  await other.set('t', 100); // a conflict
  assert.equal(await r.multi().set('t', 2).exec(), null);
  await r.watch('t');
  assert.deepEqual(await r.multi().incr('t').exec(), [[null, 101]]);
  await assert.rejects(r.multi({ pipeline: true }).set('t').exec(), /EXECABORT/);
}

async function scripts() {
  r.defineCommand('twice', { numberOfKeys: 1, lua: 'return 2 * redis.call("INCRBY", KEYS[1], ARGV[1])' });
  assert.equal(await r.twice('n', 4), 8);
  await r.script('FLUSH');
  assert.equal(await r.twice('n', 4), 16); // loads it again by itself
  assert.deepEqual(await r.pipeline().twice('n', 1).get('n').exec(), [[null, 18], [null, '9']]);
  await r.function('LOAD', 'REPLACE', '#!lua name=smoke\nredis.register_function("smoke", function(k, a) return {k[1], a[1]} end)');
  assert.deepEqual(await r.fcall('smoke', 1, 'key', 'value'), ['key', 'value']);
  const compiled = await r.functionBuffer('DUMP');
  await r.function('FLUSH');
  assert.equal(await r.function('RESTORE', compiled), 'OK');
  assert.deepEqual(await r.fcall('smoke', 1, 'key', 'value'), ['key', 'value']);
}

async function publishing() {
  const listener = new Redis(options);
  assert.equal(await listener.subscribe('smoke:news', 'smoke:more'), 2);
  assert.equal(await listener.psubscribe('smoke:w*'), 3);
  await assert.rejects(listener.get('x'), /subscriber mode/);
  let heard = once(listener, 'message');
  assert.equal(await r.publish('smoke:news', 'one'), 1);
  assert.deepEqual(await heard, ['smoke:news', 'one']);
  heard = once(listener, 'pmessageBuffer');
  assert.equal(await r.publish('smoke:weather', Buffer.from([0, 255])), 1);
  assert.deepEqual((await heard).map(String), ['smoke:w*', 'smoke:weather', String(Buffer.from([0, 255]))]);
  assert.equal(await listener.unsubscribe('smoke:news', 'smoke:more'), 1);
  assert.equal(await listener.punsubscribe('smoke:w*'), 0);
  assert.equal(await listener.get('absent'), null);
  listener.disconnect();
}

async function blocking() {
  const waiting = r.duplicate();
  assert.equal(await waiting.blpop('absent', 0.05), null);
  const popped = waiting.blpop('none', 'queue', 20);
  await waitFor(async () => /blocked_clients:1/.test(await r.info('clients')), 'a blocked client');
  await r.rpush('queue', 'job');
  assert.deepEqual(await popped, ['queue', 'job']);
  await r.zadd('ranked', 2, 'b', 1, 'a');
  assert.deepEqual(await waiting.bzpopmax('ranked', 20), ['ranked', 'b', '2']);
  assert.deepEqual(await waiting.bzmpop(1, 1, 'ranked', 'MIN'), ['ranked', [['a', '1']]]);
  waiting.disconnect();
}

async function streams() {
  const ids = [];
  for (let n = 0; n < 10; ++n) ids.push(await r.xadd('log', '*', 'n', n));
  await r.xgroup('CREATE', 'log', 'workers', '0');
  const [[, entries]] = await r.xreadgroup('GROUP', 'workers', 'ann', 'COUNT', 6, 'STREAMS', 'log', '>');
  assert.deepEqual(entries.map(([id, fields]) => [id, fields[1]]), ids.slice(0, 6).map((id, n) => [id, `${n}`]));
  assert.equal(await r.xack('log', 'workers', ...ids.slice(0, 4)), 4);
  assert.deepEqual(await r.xpending('log', 'workers'), [2, ids[4], ids[5], [['ann', '2']]]);
  assert.deepEqual((await r.xclaim('log', 'workers', 'bob', 0, ids[4], 'JUSTID')), [ids[4]]);
  assert.equal(await r.xlen('log'), 10);
}

async function scanning() {
  await r.flushdb();
  await r.mset(Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`user:${n}`, n])));
  const found = [];
  for await (const keys of r.scanStream({ match: 'user:*', count: 30 })) found.push(...keys);
  assert.equal(new Set(found).size, 500);
  await r.hset('h', Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`f${n}`, n])));
  let fields = 0;
  for await (const pairs of r.hscanStream('h', { match: 'f1*' })) fields += pairs.length / 2;
  assert.equal(fields, 111);
  assert.equal(Object.keys(await r.hgetall('h')).length, 600);
}

async function tracking() {
  const listener = new Redis(options);
  await listener.subscribe('__redis__:invalidate');
  const id = /id=(\d+) [^\n]* sub=1 /.exec(await other.client('LIST'))[1];
  assert.equal(await r.client('TRACKING', 'ON', 'REDIRECT', id), 'OK');
  await r.set('cached', 1);
  await r.get('cached');
  const heard = once(listener, 'message');
  await other.set('cached', 2);
  assert.deepEqual((await heard).map(String), ['__redis__:invalidate', 'cached']);
  assert.equal(await r.client('TRACKING', 'OFF'), 'OK');
  listener.disconnect();
}

async function secured() {
  const tls = { ...options, port: tlsPort, tls: { ca: readFileSync(caFile) }, username: 'smoke' };
  const client = new Redis({ ...tls, password: 'secret' });
  assert.equal(await client.set('smoke:x', 'y'.repeat(200_000)), 'OK');
  assert.equal((await client.get('smoke:x')).length, 200_000);
  await assert.rejects(client.get("another's"), /NOPERM/);
  client.disconnect();
  const refused = new Redis({ ...tls, password: 'wrong' });
  const errors = once(refused, 'error', { signal: AbortSignal.timeout(20000) });
  refused.ping().catch(() => {});
  assert.match(String(await errors), /WRONGPASS/);
  refused.disconnect();
}

// What it makes of names and of databases.
async function connections() {
  assert.match(await other.client('LIST'), / name=smoke /);
  const third = new Redis({ ...options, db: 3, keyPrefix: 'prefix:' });
  await third.set('k', 'ü');
  assert.equal(await third.get('k'), 'ü');
  await r.select(3);
  assert.deepEqual(await r.keys('*'), ['prefix:k']);
  await r.select(0);
  third.disconnect();
}

for (const part of [pipelines, transactions, scripts, publishing, blocking, streams, scanning, tracking, secured, connections]) {
  await part();
}
await Promise.all([r.quit(), other.quit()]);
console.log('ioredis: ok');
