import { readFileSync } from 'node:fs';

import { askCaller } from '@gantry/gateway/admin/client.ts';

import type { TestRedis } from '../redis/test-redis.ts';
import { type RawAnswer, RawClient } from './raw-client.ts';
import type { Settings, TestGateway } from './test-gateway.ts';

export const settings: Settings = { workers: 2, limits: { anonymous: 20 }, secondary: { concurrent: { limit: 1000 } } };

/** The processes of the workers. */
export function workersOf({ pid }: TestGateway): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).map(Number);
}

/** A request on a connection of its own: the kernel chooses the worker. */
export async function ask(gateway: TestGateway, path = '/user'): Promise<RawAnswer> {
  using client = await RawClient.connect(gateway);
  return await client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).answer();
}

export async function askTimes(count: number, gateway: TestGateway): Promise<RawAnswer[]> {
  return await Promise.all(Array.from({ length: count }, async () => await ask(gateway)));
}

export async function askInTurn(count: number, gateway: TestGateway): Promise<RawAnswer[]> {
  const answers: RawAnswer[] = [];
  for (let n = 0; n < count; n += 1) answers.push(await ask(gateway));
  return answers;
}

export async function underWay(gateway: TestGateway): Promise<number> {
  return (await askCaller(gateway.adminSocket, 'ip:127.0.0.1')).underWay;
}

/** The settings of a store; each test has one of its own. */
export function storeOf(kind: 'memory' | 'sqlite' | 'redis', redis: TestRedis): Settings['store'] {
  if (kind === 'sqlite') return { kind, path: '{folder}/limits.db' };
  return kind === 'redis' ? { kind, url: redis.url, timeoutMs: 5000 } : {};
}
