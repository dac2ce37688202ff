import type { Engine } from '../../../engine.ts';
import { mappedRoot, type IdMap } from '../../../host/users/id-map.ts';
import { EngineError } from '../../../lib/errors.ts';
import { sharedWith } from '../../../lib/shared-namespace.ts';
import type { ShimMap } from '../../../runtime/shim/shim-options.ts';
import { checkWithUserNamespace } from '../../settings/host-config/host-config-checks.ts';
import { isAlive } from '../../state.ts';
import type { Container } from '../../store.ts';

/** The map of a start; undefined for a container with the host's users. Throws `invalid` for what does not go with one. */
export function mapOf(idMap: IdMap | undefined, { hostConfig }: Container): IdMap | undefined {
  if (idMap === undefined || hostConfig.UsernsMode === 'host') return undefined;
  checkWithUserNamespace(hostConfig);
  return idMap;
}

/**
 * A container that shares a namespace with another one shares its user namespace, as with dockerd. Throws `failed` where
 * the other container has the users of the host, or where two containers have different ones: the kernel lets nobody be
 * root in both.
 */
export function shimMapOf(
  engine: Pick<Engine, 'containers'>,
  { idMap, hostConfig }: Pick<Container, 'idMap' | 'hostConfig'>,
): ShimMap | undefined {
  if (idMap === undefined) return undefined;
  const [first, ...further] = sharingContainers(engine, hostConfig);
  if (first === undefined) return { root: mappedRoot(idMap), ofPid: undefined };
  const owner = ownerOfUsers(engine, first);
  for (const other of [first, ...further]) {
    if (other.idMap !== undefined && ownerOfUsers(engine, other).id === owner.id) continue;
    throw new EngineError(
      'failed',
      `cannot join namespaces of container ${other.id}: it has another user namespace; share namespaces of one container only, or use the user namespace of the host for both`,
    );
  }
  return { root: mappedRoot(idMap), ofPid: isAlive(first.state) ? first.state.pid : undefined };
}

/** The containers whose namespaces are shared. */
function sharingContainers(
  { containers }: Pick<Engine, 'containers'>,
  { NetworkMode, PidMode, IpcMode }: Container['hostConfig'],
): Container[] {
  return [NetworkMode, PidMode, IpcMode].flatMap((mode) => {
    const ref = sharedWith(mode);
    return ref === undefined ? [] : [containers.find(ref)];
  });
}

/** The container that the user namespace was made for. */
function ownerOfUsers(engine: Pick<Engine, 'containers'>, container: Container): Container {
  const seen = new Set<string>();
  let owner = container;
  for (let next: Container | undefined = owner; next !== undefined && !seen.has(next.id);) {
    owner = next;
    seen.add(owner.id);
    [next] = sharingContainers(engine, owner.hostConfig);
  }
  return owner;
}
