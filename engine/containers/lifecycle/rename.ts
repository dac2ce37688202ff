import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { emitContainer } from '../container-events.ts';
import { withNames } from '../networks/attachments.ts';
import { holderOf, registrationOf } from '../networks/registrations.ts';
import { containerName } from '../settings/container-name.ts';
import { isAlive } from '../state.ts';
import type { Container } from '../store.ts';

type Needs = Pick<Engine, 'config' | 'containers' | 'events' | 'networks'>;

/** Throws `invalid` and `conflict` (the name is taken, or its own). Specification, endpoint 15. */
export function renameContainer(engine: Needs, ref: string, wanted = ''): void {
  const { id, name: before } = engine.containers.find(ref);
  if (wanted === '') throw new EngineError('invalid', 'Neither old nor new names may be empty');
  const name = containerName(wanted);
  if (name === before) {
    throw new EngineError('conflict', 'Renaming a container with the same name as its current name');
  }
  engine.containers.together(() => {
    const changed = engine.containers.change(id, (current) => renamed(current, name));
    emitContainer(engine.events, 'rename', changed, { oldName: `/${before}` });
  });
  engine.networks.overlays.attachments.rename(before, name);
  const container = engine.containers.find(id);
  if (!isAlive(container.state) || !engine.networks.dns.isServed(id)) return;
  engine.networks.dns.change(registrationOf(engine, container, holderOf(container.state.pid)));
}

function renamed(current: Container, name: string): Container {
  const container = { ...current, name };
  const attachments = Object.entries(current.attachments).map(([network, attachment]) => [
    network,
    attachment.dnsNames === undefined ? attachment : withNames(container, network, attachment),
  ]);
  return { ...container, attachments: Object.fromEntries(attachments) };
}
