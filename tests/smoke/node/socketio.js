// socket.io's redis adapter against a server: socketio.js port. Two servers; what one tells the other's clients hear.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createAdapter, createShardedAdapter } from '@socket.io/redis-adapter';
import { createClient } from 'redis';
import { Server } from 'socket.io';
import { io } from 'socket.io-client';
import { waitFor } from './messages.js';

const port = Number(process.argv[2]);

async function serve(makeAdapter, protocol) {
  const publisher = createClient({ socket: { port, host: '127.0.0.1' }, RESP: protocol });
  const subscriber = publisher.duplicate();
  await Promise.all([publisher.connect(), subscriber.connect()]);
  const http = createServer().listen(0, '127.0.0.1');
  await once(http, 'listening');
  const server = new Server(http, { adapter: makeAdapter(publisher, subscriber), transports: ['websocket'] });
  server.on('connection', (socket) => {
    socket.on('join', (room, done) => { socket.join(room); done(); });
    socket.on('say', (room, text) => server.to(room).emit('said', text));
  });
  const client = io(`http://127.0.0.1:${http.address().port}`, { transports: ['websocket'], reconnection: false });
  const heard = [];
  client.on('said', (text) => heard.push(text));
  client.on('ask', (reply) => reply('me'));
  await once(client, 'connect');
  return {
    server, client, heard,
    close: async () => { client.close(); await server.close(); await publisher.close(); await subscriber.close(); },
  };
}

async function run(makeAdapter, protocol) {
  const [one, two] = [await serve(makeAdapter, protocol), await serve(makeAdapter, protocol)];
  await one.client.emitWithAck('join', 'room');
  await two.client.emitWithAck('join', 'room');
  await waitFor(async () => (await one.server.in('room').fetchSockets()).length === 2, 'both sockets');
  one.client.emit('say', 'room', 'hello');
  two.client.emit('say', 'room', Buffer.from([0, 255]).toString('latin1'));
  await waitFor(() => one.heard.length === 2 && two.heard.length === 2, 'two messages at both');
  assert.deepEqual(one.heard.toSorted?.() ?? [...one.heard].sort(), [...two.heard].sort());
  assert.deepEqual(await two.server.timeout(10000).emitWithAck('ask'), ['me', 'me']);
  one.server.in('room').socketsLeave('room');
  await waitFor(async () => (await two.server.in('room').fetchSockets()).length === 0, 'an empty room');
  const disconnected = once(two.client, 'disconnect');
  one.server.disconnectSockets();
  await disconnected;
  await Promise.all([one.close(), two.close()]);
}

await run((publisher, subscriber) => createAdapter(publisher, subscriber), 2);
await run((publisher, subscriber) => createShardedAdapter(publisher, subscriber), 3);
console.log("socket.io's redis adapter: ok");
