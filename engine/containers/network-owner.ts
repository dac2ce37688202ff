import { EngineError } from '../lib/errors.ts';
import type { Container } from './store.ts';

const SHARED = 'container:';

/**
 * The container whose network this one is in: its own, or the one at the end of `container:<id>`. Throws what `find`
 * throws, and `failed` for containers that lead to each other.
 */
export function networkOwner(container: Container, find: (ref: string) => Container): Container {
  const passed = new Set([container.id]);
  let owner = container;
  while (owner.hostConfig.NetworkMode.startsWith(SHARED)) {
    owner = find(owner.hostConfig.NetworkMode.slice(SHARED.length));
    if (passed.has(owner.id)) throw new EngineError('failed', 'cannot join own network');
    passed.add(owner.id);
  }
  return owner;
}
