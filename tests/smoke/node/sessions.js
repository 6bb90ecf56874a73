// connect-redis behind express-session: sessions.js port. Sessions are kept, changed, listed, destroyed, and expire.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { promisify } from 'node:util';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import { createClient } from 'redis';
import { waitFor } from './messages.js';

const client = await createClient({ socket: { port: Number(process.argv[2]), host: '127.0.0.1' } }).connect();
const store = new RedisStore({ client, prefix: 'smoke:', ttl: 60 });
const [length, all, clear] = [store.length, store.all, store.clear].map((method) => promisify(method.bind(store)));
const handle = session({ store, secret: 'smoke', resave: false, saveUninitialized: false });
const http = createServer((request, response) => handle(request, response, () => {
  if (request.url === '/out') return request.session.destroy(() => response.end('out'));
  if (request.url === '/brief') request.session.cookie.maxAge = 300;
  request.session.visits = (request.session.visits ?? 0) + 1;
  response.end(`${request.session.visits}`);
})).listen(0, '127.0.0.1');
await once(http, 'listening');

function visitor() {
  let cookie = '';
  return async (path) => {
    const response = await fetch(`http://127.0.0.1:${http.address().port}${path}`, { headers: { cookie } });
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie;
    return response.text();
  };
}

const [ann, bob] = [visitor(), visitor()];
assert.deepEqual([await ann('/'), await ann('/'), await ann('/'), await bob('/')], ['1', '2', '3', '1']);
assert.equal(await length(), 2);
assert.equal((await all()).length, 2);
const [key] = await client.keys('smoke:*');
assert.ok(await client.ttl(key) > 50);
assert.equal(await bob('/out'), 'out');
assert.equal(await length(), 1);
assert.equal(await ann('/brief'), '4');
await waitFor(async () => await length() === 0, 'the end of a brief session');
assert.equal(await ann('/'), '1');
await clear();
assert.equal(await client.dbSize(), 0);
http.close();
http.closeAllConnections();
await client.close();
console.log('connect-redis: ok');
