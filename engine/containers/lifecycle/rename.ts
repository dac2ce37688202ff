import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { emitContainer } from '../container-events.ts';
import { holderOf, registrationOf } from '../networks/registrations.ts';
import { containerName } from '../settings/container-name.ts';
import { isAlive } from '../state.ts';

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
    const renamed = engine.containers.change(id, (current) => ({ ...current, name }));
    emitContainer(engine.events, 'rename', renamed, { oldName: `/${before}` });
  });
  engine.networks.overlays.attachments.rename(before, name);
  const renamed = engine.containers.find(id);
  if (!isAlive(renamed.state) || !engine.networks.dns.isServed(id)) return;
  engine.networks.dns.change(registrationOf(engine, renamed, holderOf(renamed.state.pid)));
}
