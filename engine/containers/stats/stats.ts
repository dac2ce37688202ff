import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { isAlive } from '../state.ts';
import type { Container } from '../store.ts';
import { presentStats } from './present-stats.ts';
import type { Sample } from './sample.ts';
import type { Stats } from './schema.ts';

type Needs = Pick<Engine, 'containers' | 'samplers'>;

/** The conversion of answers for an older client. */
export type Older = ((stats: Stats) => Stats) | undefined;

/** The last line of a reading: clients with the same reading before it share it. */
type Said = Readonly<{ before: Sample | undefined; name: string; line: Buffer }>;
const said = new WeakMap<Sample, Said>();

/** A client of a stream. */
type StatsClient = Readonly<{
  /** Whether it has not taken the last sample yet. */
  isBehind: boolean;
  send: (line: Buffer) => void;
  signal: AbortSignal;
}>;

/**
 * One sample a second as a line of JSON, until the client leaves or the container is removed; for a stopped one all
 * values are 0, as in dockerd. A client that is behind misses samples. Specification, endpoint 8.
 */
export async function streamStats(
  { containers, samplers }: Needs,
  { id }: Container,
  client: StatsClient,
  older?: Older,
): Promise<void> {
  const over = Promise.withResolvers<void>();
  let before: Sample | undefined;
  using _following = samplers.follow(id, {
    isReady: () => !client.isBehind,
    take: (sample) => {
      const container = containers.get(id);
      if (container === undefined) return;
      client.send(lineOf(container, sample, before, older));
      before = sample;
    },
    end: (error) => (error === undefined ? over.resolve() : over.reject(error)),
  });
  client.signal.addEventListener('abort', () => over.resolve(), { once: true });
  if (client.signal.aborted) return;
  await over.promise;
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

/** One reading at once, without one before it. */
export function oneReading({ samplers }: Needs, container: Container): Stats {
  const sample = isAlive(container.state) ? samplers.one(container.id) : undefined;
  return presentStats(container, sample ?? { at: container.createdAt, usage: undefined }, undefined);
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
