import type { Clock } from '../../lib/clock.ts';
import type { Vertex } from './vertex.ts';

/** Clients draw not more often. */
const INTERVAL_MS = 150;
/** A look at the clock for each name of a file would take as long as the name. */
const CALLS_PER_LOOK = 8;

/** Shows a transfer from the client as a vertex. `work` tells its bytes so far. */
export async function transferred<T>(
  vertex: Vertex,
  clock: Clock,
  name: string,
  work: (onBytes: (bytes: number) => void) => Promise<T>,
): Promise<T> {
  let last = 0;
  let shownAt = 0;
  let calls = 0;
  const onBytes = (bytes: number): void => {
    last = bytes;
    calls += 1;
    if (calls % CALLS_PER_LOOK !== 0) return;
    const now = clock.now().epochMilliseconds;
    if (now - shownAt < INTERVAL_MS) return;
    shownAt = now;
    vertex.status(name, bytes, 0, false);
  };
  return await vertex.run(async () => {
    const result = await work(onBytes);
    vertex.status(name, last, 0, true);
    return result;
  });
}
