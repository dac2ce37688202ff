import { EngineError } from '../../lib/errors.ts';
import { isAlive } from '../state.ts';
import type { Container, ContainerStore } from '../store.ts';
import { presentStats } from './present-stats.ts';
import type { Sample } from './sample.ts';
import type { Samplers } from './samplers.ts';
import type { Stats } from './schema.ts';

type Needs = { containers: ContainerStore; samplers: Samplers };

/** What makes an answer for an older client. */
export type Older = ((stats: Stats) => Stats) | undefined;

/** The last line of a reading: all clients that have read the same before get the same. */
type Said = Readonly<{ before: Sample | undefined; name: string; line: Buffer }>;
const said = new WeakMap<Sample, Said>();

/**
 * One sample a second as a line of JSON, until the client leaves or the container is removed; of one that does not run
 * all is 0, as in dockerd. Specification, endpoint 8.
 */
export async function* streamStats(
  { containers, samplers }: Needs,
  { id }: Container,
  signal: AbortSignal,
  older?: Older,
): AsyncGenerator<Buffer> {
  let before: Sample | undefined;
  for await (const sample of samplers.watch(id, signal)) {
    const container = containers.get(id);
    if (container === undefined) return;
    yield lineOf(container, sample, before, older);
    before = sample;
  }
}

/** One sample with its two readings; at once for a container that does not run. */
export async function oneSample(
  { containers, samplers }: Needs,
  container: Container,
  signal: AbortSignal,
): Promise<Stats> {
  const { id } = container;
  if (!isAlive(container.state))
    return presentStats(container, { at: container.createdAt, usage: undefined }, undefined);
  const samples = await samplers.two(id, signal);
  const now = containers.get(id);
  if (samples === undefined || now === undefined) throw new EngineError('notFound', `No such container: ${id}`);
  const [before, sample] = samples;
  return presentStats(now, sample, before);
}

function lineOf(container: Container, sample: Sample, before: Sample | undefined, older: Older): Buffer {
  if (older !== undefined) return asLine(older(presentStats(container, sample, before)));
  const { name } = container;
  const known = said.get(sample);
  if (known !== undefined && known.before === before && known.name === name) return known.line;
  const line = asLine(presentStats(container, sample, before));
  said.set(sample, { before, name, line });
  return line;
}

function asLine(stats: Stats): Buffer {
  return Buffer.from(`${JSON.stringify(stats)}\n`);
}
