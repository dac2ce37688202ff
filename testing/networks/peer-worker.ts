import { createSocket } from 'node:dgram';
import { connect, createServer, isIPv6 } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

import { enter } from '@gantry/engine/host/namespaces.ts';
import { hasCode } from '@gantry/engine/lib/errors.ts';

import type { PeerAnswer, PeerTask } from './peer.ts';

// A worker is a thread of its own, so it can live in another network namespace for good.
enter((workerData as { netns: number }).netns, 'net');
const port = parentPort!;
port.on('message', (task: PeerTask) => {
  void perform(task).then(
    (text) => port.postMessage({ id: task.id, text } satisfies PeerAnswer),
    (error: unknown) => port.postMessage({ id: task.id, code: codeOf(error) } satisfies PeerAnswer),
  );
});

async function perform(task: PeerTask): Promise<string> {
  switch (task.kind) {
    case 'serve tcp':
      return await serveTcp(task.port, task.name);
    case 'serve udp':
      return await serveUdp(task.port, task.name, task.address);
    case 'ask tcp':
      return await askTcp(task.host, task.port, task.timeoutMs);
    case 'ask udp':
      return await askUdp(task.host, task.port, task.timeoutMs, task.from);
  }
}

/** Answers every client with its name and the client's address. */
async function serveTcp(at: number, name: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.end(`${name} sees ${socket.remoteAddress ?? 'nobody'}`);
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  server.once('error', reject).listen(at, '0.0.0.0', () => resolve('listening'));
  return await promise;
}

async function serveUdp(at: number, name: string, address = '0.0.0.0'): Promise<string> {
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  socket.on('message', (_, from) => socket.send(`${name} sees ${from.address}`, from.port, from.address));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.once('error', reject).bind(at, address, () => resolve('bound'));
  return await promise;
}

async function askTcp(host: string, at: number, timeoutMs: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = '';
  const socket = connect({ host, port: at });
  socket
    .setTimeout(timeoutMs, () => socket.destroy(Object.assign(new Error('silence'), { code: 'ETIMEDOUT' })))
    .on('data', (chunk) => (text += chunk.toString()))
    .on('end', () => resolve(text.replaceAll('::ffff:', '')))
    .on('error', reject);
  return await promise;
}

async function askUdp(host: string, at: number, timeoutMs: number, from?: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  const timer = setTimeout(() => reject(Object.assign(new Error('silence'), { code: 'ETIMEDOUT' })), timeoutMs);
  socket.on('message', (bytes) => resolve(bytes.toString())).on('error', reject);
  if (from === undefined) socket.send('who?', at, host);
  else socket.bind(from, () => socket.send('who?', at, host));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    socket.close();
  }
}

function codeOf(error: unknown): string {
  const known = ['ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRINUSE', 'EINVAL', 'ECONNRESET'];
  return known.find((code) => hasCode(error, code)) ?? String(error);
}
