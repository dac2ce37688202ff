import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const END_OF_HEAD = '\r\n\r\n';

/** A connection behind the upgrade of an endpoint to HTTP/2. `headers`: further lines. */
export async function upgraded(
  socketPath: string,
  path: '/grpc' | '/session',
  headers: readonly string[] = [],
): Promise<Socket> {
  const socket = connect(socketPath);
  const lines = [`POST ${path} HTTP/1.1`, 'Host: d', 'Connection: Upgrade', 'Upgrade: h2c', ...headers];
  socket.write(lines.join('\r\n') + END_OF_HEAD);
  let head = '';
  while (!head.includes(END_OF_HEAD)) {
    await once(socket, 'readable');
    head += ((socket.read() as Buffer | null) ?? Buffer.alloc(0)).toString('latin1');
    assert.ok(!socket.destroyed, head);
  }
  if (!head.startsWith('HTTP/1.1 101 ')) {
    socket.destroy();
    throw new Error(`not upgraded: ${head}`);
  }
  // The first frames may have come with the head.
  const rest = head.slice(head.indexOf(END_OF_HEAD) + END_OF_HEAD.length);
  if (rest !== '') socket.unshift(Buffer.from(rest, 'latin1'));
  return socket;
}
