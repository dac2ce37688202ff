import type { Events } from '../events/events.ts';
import type { Clock } from '../lib/clock.ts';
import { EngineError } from '../lib/errors.ts';
import { makeFolders } from '../lib/folders.ts';
import { newId } from '../lib/ids.ts';
import type { Volume, VolumeStore } from './store.ts';

type Needs = { volumes: VolumeStore; clock: Clock; events: Events };
type Wanted = {
  name?: string;
  driver?: string;
  options?: Readonly<Record<string, string>>;
  labels?: Readonly<Record<string, string>>;
  /** For one container, which has not been made yet. */
  anonymous?: boolean;
};

/** Bytes of a name in a folder, by the kernel. */
const LONGEST_NAME = 255;
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/;

/** Makes a volume, or returns the one that has the name already. Throws `invalid` and `notFound` (driver). */
export function createVolume(
  engine: Needs,
  { name = '', driver = '', options = {}, labels = {}, anonymous = false }: Wanted,
): Volume {
  if (driver !== '' && driver !== 'local') {
    throw new EngineError(
      'notFound',
      `create ${name}: error looking up volume plugin ${driver}: plugin "${driver}" not found`,
    );
  }
  const [option] = Object.keys(options);
  if (option !== undefined) {
    throw new EngineError(
      'invalid',
      `create ${name}: the driver options of "local" are not supported yet: "${option}"`,
    );
  }
  if (name !== '' && !NAME.test(name)) {
    throw new EngineError(
      'invalid',
      `create ${name}: "${name}" includes invalid characters for a local volume name, only "[a-zA-Z0-9][a-zA-Z0-9_.-]" are allowed. If you intended to pass a host directory, use absolute path`,
    );
  }
  if (name.length > LONGEST_NAME) {
    throw new EngineError('invalid', `create: a volume name of ${name.length} bytes: ${LONGEST_NAME} is the most`);
  }
  const existing = engine.volumes.get(name);
  if (existing !== undefined) return existing;
  const volume = { name: name === '' ? newId() : name, createdAt: engine.clock.now(), labels, anonymous };
  makeFolders(engine.volumes.mountpoint(volume.name), 0o755); // as containers see it, whatever user they run as
  engine.volumes.insert(volume);
  engine.events.emit('volume', 'create', volume.name, { driver: 'local' });
  return volume;
}
