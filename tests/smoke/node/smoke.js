// node-redis against a server: smoke.js port protocol, port of TLS, certificate of its CA
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, RESP_TYPES, WatchError } from 'redis';
import * as messages from './messages.js';

const [port, protocol, tlsPort] = process.argv.slice(2).map(Number);
const caFile = process.argv[5];

async function connect(options = {}) {
  const client = createClient({ socket: { port, host: '127.0.0.1' }, RESP: protocol, ...options });
  client.on('error', (error) => { if (!/WRONGPASS/.test(error.message)) { console.error(error); process.exit(1); } });
  return client.connect();
}

async function strings(r) {
  assert.equal(await r.ping(), 'PONG');
  assert.equal(await r.set('greeting', 'hello'), 'OK');
  assert.equal(await r.get('greeting'), 'hello');
  assert.equal(await r.get('absent'), null);
  assert.equal(await r.set('greeting', 'again', { NX: true }), null);
  assert.equal(await r.set('greeting', 'bye', { GET: true }), 'hello');
  assert.deepEqual([await r.incr('count'), await r.incrBy('count', 5), await r.decr('count')], [1, 6, 5]);
  assert.equal(await r.mSet({ a: '1', b: '2' }), 'OK');
  assert.deepEqual(await r.mGet(['a', 'absent', 'b']), ['1', null, '2']);
  assert.equal(await r.append('a', '23'), 3);
  assert.equal(await r.getRange('a', 1, -1), '23');
  assert.equal(await r.exists(['a', 'b', 'absent']), 2);
  assert.equal(await r.del(['a', 'b', 'absent']), 2);
  assert.equal(await r.type('count'), 'string');
}

async function expiry(r) {
  await r.set('short', 'x', { PX: 100 });
  const left = await r.pTTL('short');
  assert.ok(left > 0 && left <= 100);
  await r.set('long', 'x', { EX: 1000 });
  assert.ok(await r.ttl('long') > 995);
  assert.equal(await r.persist('long'), 1);
  assert.equal(await r.ttl('long'), -1);
  assert.equal(await r.ttl('absent'), -2);
  for (const deadline = Date.now() + 5000; await r.exists('short'); await sleep(20)) {
    assert.ok(Date.now() < deadline);
  }
}

async function pipelines(r) {
  // Commands of one tick go out as one pipeline.
  const numbers = Array.from({ length: 1000 }, (_, n) => n);
  const answers = await Promise.all(numbers.flatMap((n) => [r.set(`p:${n}`, `${n}`), r.get(`p:${n}`)]));
  assert.deepEqual(answers, numbers.flatMap((n) => ['OK', `${n}`]));
  const [ok, error, value] = await Promise.allSettled([r.set('text', 'abc'), r.incr('text'), r.get('text')]);
  assert.equal(ok.value, 'OK');
  assert.match(error.reason.message, /not an integer/);
  assert.equal(value.value, 'abc');
}

async function transactions(r, other) {
  assert.deepEqual(await r.multi().set('t', '1').incr('t').get('t').exec(), ['OK', 2, '2']);
  await r.watch('t');
  await other.set('t', '100'); // a conflict
  await assert.rejects(r.multi().set('t', '2').exec(), WatchError);
  assert.equal(await r.get('t'), '100');
  await r.watch('t');
  assert.deepEqual(await r.multi().incr('t').exec(), [101]);
}

async function scanning(r) {
  await r.flushDb();
  const pairs = {};
  for (let n = 0; n < 500; ++n) pairs[`user:${n}`] = `${n}`;
  for (let n = 0; n < 100; ++n) pairs[`item:${n}`] = `${n}`;
  await r.mSet(pairs);
  assert.equal(await r.dbSize(), 600);
  const found = [];
  for await (const keys of r.scanIterator({ MATCH: 'user:*', COUNT: 50 })) found.push(...keys);
  assert.deepEqual(found.sort(), Object.keys(pairs).filter((key) => key.startsWith('user:')).sort());
  assert.equal((await r.keys('item:*')).length, 100);
}

async function values(client) {
  const r = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  const everything = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
  await r.set(everything, everything);
  assert.ok(everything.equals(await r.get(everything)));
  const large = randomBytes(5 << 20);
  await r.set('large', large);
  assert.ok(large.equals(await r.get('large')));
  await r.set('empty', '');
  assert.equal((await r.get('empty')).length, 0);
}

async function errors(r) {
  await assert.rejects(r.incr('large'), /not an integer/);
  await assert.rejects(r.sendCommand(['NOSUCH', 'x']), /unknown command/);
  await assert.rejects(r.sendCommand(['GET']), /wrong number of arguments/);
  await assert.rejects(r.sendCommand(['SET', 'k', 'v', 'EX', '0']), /invalid expire time/);
  await assert.rejects(r.rename('absent', 'x'), /no such key/);
}

async function scripts(r) {
  const script = 'redis.call("SET", KEYS[1], ARGV[1]) return {redis.call("GET", KEYS[1]), #ARGV}';
  assert.deepEqual(await r.eval(script, { keys: ['k'], arguments: ['v', 'w'] }), ['v', 2]);
  const sha = await r.scriptLoad(script);
  assert.deepEqual(await r.evalSha(sha, { keys: ['k'], arguments: ['x'] }), ['x', 1]);
  await assert.rejects(r.evalSha('x'.repeat(40), { keys: [], arguments: [] }), /NOSCRIPT/);
  await assert.rejects(r.eval('error("mine")', { keys: [], arguments: [] }), /user_script:1: mine/);
  const library = '#!lua name=smoke\nredis.register_function("twice", function(keys, args) return 2 * args[1] end)';
  assert.equal(await r.functionLoad(library, { REPLACE: true }), 'smoke');
  assert.equal(await r.fCall('twice', { keys: [], arguments: ['21'] }), 42);
}

async function server(r) {
  await r.clientSetName('smoke');
  assert.equal(await r.clientGetName(), 'smoke');
  const clients = (await r.clientList()).filter((client) => client.name === 'smoke');
  assert.equal(clients.length, 1);
  assert.equal(clients[0].id, await r.clientId());
  const info = Object.fromEntries((await r.info()).split('\r\n').filter((line) => line.includes(':'))
    .map((line) => line.split(/:(.*)/s)));
  assert.match(info.redis_version, /^7\./);
  assert.equal(info.role, 'master');
  assert.match(info.db0, new RegExp(`keys=${await r.dbSize()},`));
  assert.ok(['always', 'everysec', 'no'].includes((await r.configGet('appendfsync')).appendfsync));
  assert.ok(await r.commandCount() > 50);
}

const r = await connect();
const other = await connect();
for (const part of [strings, expiry, pipelines, transactions, scanning, values, errors, scripts, server]) {
  await part(r, other);
}
for (const part of [messages.publishing, messages.blocking, messages.streams, messages.iterators]) await part(r, connect);
if (protocol === 3) await messages.clientSideCache(r, connect);
await messages.secured(connect, tlsPort, caFile);
const third = await connect({ database: 3, name: 'third' });
await third.set('k', 'ü');
assert.equal(await third.get('k'), 'ü');
assert.equal(await third.dbSize(), 1);
await Promise.all([r, other, third].map((client) => client.close()));
console.log(`node-redis, RESP${protocol}: ok`);
