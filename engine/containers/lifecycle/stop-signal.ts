import { parseSignal } from '../../lib/notations/signal-number.ts';
import type { Container } from '../store.ts';

const SIGTERM = 15;

/** The signal that asks the container to stop. An image may have an invalid one, which counts as none, as in dockerd. */
export function stopSignalOf({ config }: Pick<Container, 'config'>): number {
  return parseSignal(config.StopSignal ?? '') ?? SIGTERM;
}
