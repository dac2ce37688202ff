import type { TestEngine } from '@gantry/testing/test-engine.ts';

import { compare, type Budget, type Row } from '../measure.ts';
import { inside } from './host.ts';
import { QUESTIONS, read } from './subject.ts';

const CROWD = 500;
const AT_ONCE = 10;

/** A network, by the process of a container that asks in it. */
type Asking = Readonly<{ pid: number; peer: string }>;

const budget: Budget<Asking> = {
  name: `20,000 names in a network of ${CROWD}, beside one of 2`,
  unit: 'ms',
  atMost: 1.1,
  rounds: 9,
  work: async ({ pid, peer }) => read(await inside(pid, peer, 'ask', 'server', String(QUESTIONS), '64')).ms,
};

/** Names in a crowded network beside those in a small one of the same engine, because dockerd takes minutes for the crowd. */
export async function crowdRow(engine: TestEngine, peer: string): Promise<Row> {
  const made: string[] = [];
  const member = async (network: string, name: string): Promise<string> => {
    const NetworkingConfig = { EndpointsConfig: { [network]: { Aliases: [name] } } };
    const body = { StopSignal: 'SIGKILL', HostConfig: { NetworkMode: network }, NetworkingConfig };
    const id = await engine.run(['sleep', '100000'], body);
    made.push(id);
    return id;
  };
  const asking = async (network: string, members: number): Promise<Asking> => {
    await engine.post('/networks/create', { Name: network });
    let next = 1;
    const worker = async (): Promise<void> => {
      while (next < members) await member(network, `other-${next++}`);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    const id = await member(network, 'server');
    const { body } = await engine.get<{ State: { Pid: number } }>(`/containers/${id}/json`);
    return { pid: body.State.Pid, peer };
  };
  const [crowded, small] = [await asking('crowd', CROWD), await asking('pair', 2)];
  const row = await compare(budget, crowded, small);
  for (const id of made) await engine.delete(`/containers/${id}?force=1`);
  for (const network of ['crowd', 'pair']) await engine.delete(`/networks/${network}`);
  return row;
}
