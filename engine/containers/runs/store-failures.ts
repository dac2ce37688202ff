import { messageOf } from '../../lib/failure-message.ts';
import type { ContainerStore } from '../store.ts';

/** Work that is retried until it succeeds; until then the container's record has the reason of the failure. */
export function storeFailures(
  containers: ContainerStore,
  id: string,
  beginning: string,
  work: () => Promise<void>,
): () => Promise<void> {
  let told = '';
  const replace = (next: (before: string) => string): void => {
    const before = containers.get(id)?.error;
    if (before === undefined || before === next(before)) return;
    containers.change(id, (current) => ({ ...current, error: next(before) }));
  };
  return async () => {
    try {
      await work();
    } catch (error) {
      told = `${beginning}: ${messageOf(error)}`;
      replace(() => told);
      throw error;
    }
    replace((before) => (before === told ? '' : before));
  };
}
