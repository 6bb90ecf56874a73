// node-redis where clients meet: pub/sub, blocking pops, streams with groups, client side caches, TLS.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export async function waitFor(condition, what) {
  for (const deadline = Date.now() + 20000; !await condition(); await sleep(10)) {
    assert.ok(Date.now() < deadline, what);
  }
}

const blocked = async (r) => Number(/blocked_clients:(\d+)/.exec(await r.info('clients'))[1]);

export async function publishing(r, connect) {
  const listener = await connect();
  const heard = [];
  await listener.subscribe('smoke:news', (message, channel) => heard.push([channel, message]));
  await listener.pSubscribe('smoke:w*', (message, channel) => heard.push([channel, message.toString('hex')]), true);
  await listener.sSubscribe('smoke:shard', (message, channel) => heard.push([channel, message]));
  assert.equal(await r.publish('smoke:news', 'one'), 1);
  assert.equal(await r.publish('smoke:weather', Buffer.from([0, 255])), 1);
  assert.equal(await r.publish('smoke:other', 'nobody'), 0);
  assert.equal(await r.sPublish('smoke:shard', 'three'), 1);
  await waitFor(() => heard.length === 3, 'three messages');
  assert.deepEqual(heard.map(([channel, message]) => [String(channel), message]),
    [['smoke:news', 'one'], ['smoke:weather', '00ff'], ['smoke:shard', 'three']]);
  await listener.unsubscribe('smoke:news');
  assert.equal(await r.publish('smoke:news', 'two'), 0);
  await listener.close();
}

export async function blocking(r, connect) {
  const waiting = await connect();
  assert.equal(await waiting.blPop('smoke:absent', 0.05), null);
  let popped = waiting.blPop(['smoke:none', 'smoke:queue'], 20);
  await waitFor(async () => await blocked(r) === 1, 'a blocked client');
  await r.rPush('smoke:queue', 'job');
  assert.deepEqual({ ...await popped }, { key: 'smoke:queue', element: 'job' });
  popped = waiting.bzPopMin('smoke:ranked', 20);
  await waitFor(async () => await blocked(r) === 1, 'another blocked client');
  await r.zAdd('smoke:ranked', [{ score: 2, value: 'second' }, { score: 1.5, value: 'first' }]);
  assert.deepEqual({ ...await popped }, { key: 'smoke:ranked', value: 'first', score: 1.5 });
  await r.rPush('smoke:from', ['a', 'b']);
  assert.equal(await waiting.blMove('smoke:from', 'smoke:to', 'LEFT', 'RIGHT', 1), 'a');
  await waiting.close();
}

export async function streams(r, connect) {
  const waiting = await connect();
  const ids = [];
  for (let n = 0; n < 20; ++n) ids.push(await r.xAdd('smoke:log', '*', { n: `${n}` }));
  assert.equal(await r.xGroupCreate('smoke:log', 'workers', '0'), 'OK');
  await assert.rejects(r.xGroupCreate('smoke:log', 'workers', '$'), /BUSYGROUP/);
  const read = async (client, consumer, options) => {
    const reply = await client.xReadGroup('workers', consumer, { key: 'smoke:log', id: '>' }, options);
    // Of RESP3 the library leaves the map as it came.
    return Array.isArray(reply) ? reply[0].messages.map(({ id }) => id) : reply['smoke:log'].map(([id]) => id);
  };
  assert.deepEqual(await read(r, 'ann', { COUNT: 12 }), ids.slice(0, 12));
  assert.deepEqual(await read(r, 'bob'), ids.slice(12));
  assert.equal(await r.xAck('smoke:log', 'workers', ids.slice(0, 10)), 10);
  const pending = await r.xPending('smoke:log', 'workers');
  assert.equal(pending.pending, 10);
  const claimed = await r.xAutoClaim('smoke:log', 'workers', 'bob', 0, '0-0', { COUNT: 2 });
  assert.deepEqual(claimed.messages.map(({ id }) => id), ids.slice(10, 12));
  const [group] = await r.xInfoGroups('smoke:log');
  assert.equal(group.name, 'workers');
  assert.equal(group.consumers, 2);
  const late = read(waiting, 'ann', { BLOCK: 20000 });
  await waitFor(async () => await blocked(r) === 1, 'a blocked reader');
  const id = await r.xAdd('smoke:log', '*', { late: '1' });
  assert.deepEqual(await late, [id]);
  assert.equal(await r.xTrim('smoke:log', 'MAXLEN', 5), 16);
  await waiting.close();
}

export async function iterators(r) {
  const fields = Object.fromEntries(Array.from({ length: 700 }, (_, n) => [`f${n}`, `${n}`]));
  await r.hSet('smoke:hash', fields);
  const found = {};
  for await (const entries of r.hScanIterator('smoke:hash', { COUNT: 50 })) {
    for (const { field, value } of entries) found[field] = value;
  }
  assert.deepEqual(found, fields);
  await r.sAdd('smoke:set', Object.keys(fields));
  await r.zAdd('smoke:zset', Object.keys(fields).map((value, score) => ({ value, score })));
  const members = new Set();
  for await (const some of r.sScanIterator('smoke:set')) some.forEach((member) => members.add(member));
  for await (const some of r.zScanIterator('smoke:zset')) some.forEach(({ value, score }) => assert.equal(value, `f${score}`));
  assert.equal(members.size, 700);
}

// RESP3 only: the library asks for it.
export async function clientSideCache(other, connect) {
  const r = await connect({ clientSideCache: { ttl: 0, maxEntries: 100 } });
  await other.set('smoke:cached', '1');
  assert.equal(await r.get('smoke:cached'), '1');
  assert.equal(await r.get('smoke:cached'), '1');
  await other.set('smoke:cached', '2');
  await waitFor(async () => await r.get('smoke:cached') === '2', 'an invalidation');
  await other.flushDb();
  await waitFor(async () => await r.get('smoke:cached') === null, 'the invalidation of all');
  await r.close();
}

export async function secured(connect, tlsPort, caFile) {
  const socket = { port: tlsPort, host: '127.0.0.1', tls: true, ca: readFileSync(caFile), reconnectStrategy: false };
  const options = { socket, username: 'smoke' };
  const r = await connect({ ...options, password: 'secret' });
  await r.set('smoke:secret', 'x'.repeat(200_000));
  assert.equal((await r.get('smoke:secret')).length, 200_000);
  assert.equal(await r.aclWhoAmI(), 'smoke');
  await assert.rejects(r.get("another's"), /NOPERM/);
  await r.close();
  await assert.rejects(connect({ ...options, password: 'wrong' }), /WRONGPASS/);
}
