import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { isAlive } from '../state.ts';

type Needs = Pick<Engine, 'containers' | 'networks' | 'locks'>;

/**
 * Disconnects a stopped container from a network that was removed meanwhile, by its former name. False: the network and
 * the container exist.
 *
 * Throws in dockerd's words: `notFound`, and `failed` when the container was not in that network.
 */
export async function leaveLostNetwork(
  engine: Needs,
  { network: name, container: ref }: { network: string; container: string },
): Promise<boolean> {
  const isThere = isFound(() => engine.networks.find(name));
  if (!isFound(() => engine.containers.find(ref))) {
    throw new EngineError('notFound', isThere ? `endpoint ${ref} not found` : `network ${name} not found`);
  }
  if (isThere) return false;
  const { id } = engine.containers.find(ref);
  using _lock = await engine.locks.hold(id);
  const { attachments, state } = engine.containers.find(id);
  if (isAlive(state) || !Object.hasOwn(attachments, name)) {
    throw new EngineError('failed', `container ${id} is not connected to the network ${name}`);
  }
  engine.containers.change(id, (current) => {
    const { [name]: _lost, ...rest } = current.attachments;
    return { ...current, attachments: rest };
  });
  return true;
}

function isFound(find: () => unknown): boolean {
  try {
    find();
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.kind === 'notFound') return false;
    throw error;
  }
}
