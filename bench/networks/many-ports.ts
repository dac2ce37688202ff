import { TestEngine } from '@gantry/testing/test-engine.ts';

import { compare, type Budget, type Row } from '../measure.ts';

const OTHERS = 10_000;
const FIRST = 20_000;

const budget: Budget<TestEngine> = {
  name: `start with a port beside ${OTHERS} published ones, and beside none`,
  unit: 'ms',
  atMost: 1.1,
  rounds: 15,
  work: async (engine) => await startWith(engine, [8080]),
};

/**
 * A start on an engine with very many published ports, beside the same on one without. libnftables reads all elements of
 * the sets before it adds one, which is what this shows.
 */
export async function manyPortsRow(): Promise<Row> {
  await using crowded = await TestEngine.start();
  await using empty = await TestEngine.start();
  await startWith(
    crowded,
    Array.from({ length: OTHERS }, (_, index) => FIRST + index),
    'others',
  );
  return await compare(budget, crowded, empty);
}

/** Milliseconds of the start. A container without a name is removed. */
async function startWith(engine: TestEngine, ports: readonly number[], name?: string): Promise<number> {
  const PortBindings = Object.fromEntries(ports.map((port) => [`${port}/tcp`, [{ HostPort: String(port) }]]));
  const body = { StopSignal: 'SIGKILL', HostConfig: { PortBindings } };
  const id = await engine.create(['sleep', '100000'], body, name);
  const started = performance.now();
  const answer = await engine.post(`/containers/${id}/start`);
  const spent = performance.now() - started;
  if (answer.status !== 204) throw new Error(`start answered ${answer.status}: ${answer.raw.toString()}`);
  if (name === undefined) await engine.delete(`/containers/${id}?force=1`);
  return spent;
}
