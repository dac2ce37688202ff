import { EngineError } from '../../lib/errors.ts';
import { sharedWith } from '../../lib/shared-namespace.ts';
import type { Container } from '../store.ts';

/**
 * The container whose network this one uses: itself, or the one at the end of `container:<id>`. Throws the errors of
 * `find`, and `failed` for a circle of containers.
 */
export function networkOwner(container: Container, find: (ref: string) => Container): Container {
  const passed = new Set([container.id]);
  let owner = container;
  for (;;) {
    const other = sharedWith(owner.hostConfig.NetworkMode);
    if (other === undefined) return owner;
    owner = find(other);
    if (passed.has(owner.id)) throw new EngineError('failed', 'cannot join own network');
    passed.add(owner.id);
  }
}
