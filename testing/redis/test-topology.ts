import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';

import { createClient } from '@redis/client';

import { eventually } from '../eventually.ts';
import { TestRedis } from './test-redis.ts';

/** One server of several that know each other, on a port of the loopback interface. */
export type Member = Readonly<{ port: number; redis: TestRedis }>;

const ANSWER_TIMEOUT_MS = 10_000;

/** Returns a server's answer to one command. One that is stopped, or starts, may never give it. */
export async function ask(port: number, ...command: readonly string[]): Promise<unknown> {
  const client = createClient({
    socket: { host: '127.0.0.1', port, reconnectStrategy: false, connectTimeout: ANSWER_TIMEOUT_MS },
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await client.sendCommand(command, { timeout: ANSWER_TIMEOUT_MS });
  } finally {
    client.destroy();
  }
}

/** A master with one replica, and three sentinels that watch over them. */
export async function startSentinels(): Promise<{ data: Member[]; sentinels: Member[] } & AsyncDisposable> {
  await using undo = new AsyncDisposableStack();
  const [first = 0, second = 0, ...rest] = await freePorts(5);
  const start = async (port: number, ...options: string[]): Promise<Member> => {
    const redis = undo.use(await TestRedis.start('--port', String(port), '--bind', '127.0.0.1', ...options));
    return { port, redis };
  };
  const master = await start(first);
  const replica = await start(second, '--replicaof', '127.0.0.1', String(first), '--repl-diskless-sync-delay', '0');
  await eventually('the replica is in step', async () =>
    String(await ask(second, 'INFO', 'replication')).includes('master_link_status:up'),
  );
  const sentinels: Member[] = [];
  for (const port of rest) {
    const redis = undo.use(TestRedis.prepare());
    const file = join(redis.folder, 'sentinel.conf');
    writeFileSync(
      file,
      `sentinel monitor main 127.0.0.1 ${first} 2\nsentinel down-after-milliseconds main 1000\n` +
        'sentinel failover-timeout main 5000\n',
    );
    await redis.startWith(file, '--sentinel', '--port', String(port), '--bind', '127.0.0.1', '--dir', redis.folder);
    sentinels.push({ port, redis });
  }
  for (const { port } of sentinels) {
    await eventually('each sentinel knows the others', async () => {
      const known = String(await ask(port, 'INFO', 'sentinel'));
      return known.includes('slaves=1,sentinels=3');
    });
  }
  const parts = undo.move();
  return {
    data: [master, replica],
    sentinels,
    [Symbol.asyncDispose]: async () => await parts.disposeAsync(),
  };
}

/** Three masters, the first of them with a replica. */
export async function startCluster(): Promise<{ members: Member[] } & AsyncDisposable> {
  await using undo = new AsyncDisposableStack();
  const ports = await freePorts(8);
  const members: Member[] = [];
  for (const port of ports.slice(0, 4)) {
    const options = ['--port', String(port), '--bind', '127.0.0.1', '--cluster-enabled', 'yes'];
    options.push('--cluster-port', String(ports[4 + members.length]), '--cluster-node-timeout', '5000');
    options.push('--cluster-require-full-coverage', 'no', '--repl-diskless-sync-delay', '0');
    members.push({ port, redis: undo.use(await TestRedis.start(...options)) });
  }
  const [first, ...others] = members;
  const slots = [
    ['0', '5460'],
    ['5461', '10922'],
    ['10923', '16383'],
  ];
  for (const [index, range] of slots.entries()) await ask(ports[index]!, 'CLUSTER', 'ADDSLOTSRANGE', ...range);
  for (const [index, { port }] of others.entries()) {
    await ask(first!.port, 'CLUSTER', 'MEET', '127.0.0.1', String(port), String(ports[5 + index]));
  }
  const id = String(await ask(first!.port, 'CLUSTER', 'MYID'));
  for (const { port } of members) {
    await eventually(
      'each node knows the others',
      async () =>
        String(await ask(port, 'CLUSTER', 'NODES'))
          .trim()
          .split('\n').length === 4,
    );
  }
  await eventually('the replica has its master', async () => {
    await ask(ports[3]!, 'CLUSTER', 'REPLICATE', id);
    return String(await ask(ports[3]!, 'INFO', 'replication')).includes('master_link_status:up');
  });
  for (const { port } of members) {
    await eventually('all slots are served', async () => {
      const nodes = String(await ask(port, 'CLUSTER', 'NODES'));
      return nodes.includes('slave') && String(await ask(port, 'CLUSTER', 'INFO')).includes('cluster_slots_ok:16384');
    });
  }
  const parts = undo.move();
  return { members, [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
}

/** Unused ports below those that the kernel gives to connections. */
async function freePorts(count: number): Promise<number[]> {
  const range = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split('\t');
  const lowest = Number(range[0]);
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = 10_000 + Math.floor(Math.random() * (lowest - 10_000));
    const server = createServer();
    const taken = new Promise<boolean>((resolve) => server.once('error', () => resolve(true)));
    const free = once(server, 'listening').then(
      () => false,
      () => true,
    );
    server.listen(port, '127.0.0.1');
    if (await Promise.race([taken, free])) continue;
    ports.add((server.address() as AddressInfo).port);
    server.close();
  }
  return [...ports];
}
