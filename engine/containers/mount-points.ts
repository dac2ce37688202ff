import { posix } from 'node:path';

import { EngineError } from '../lib/errors.ts';
import type { MountPoint } from './store.ts';

const PROPAGATIONS = new Set(['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave']);
const KNOWN_MODES = new Set(['ro', 'rw', 'z', 'Z', 'nocopy', 'cached', 'delegated', 'consistent', ...PROPAGATIONS]);

/** Reads `source:destination[:modes]` or `destination`; a source without a slash names a volume. Throws `invalid`. */
export function parseBind(bind: string): MountPoint {
  const parts = bind.split(':');
  const [first = '', second, modes = ''] = parts;
  if (parts.length > 3 || first === '' || second === '') throw invalid(bind);
  if (second === undefined) return volumeMount('', checkedDestination(first, bind), '', true);
  const options = modes === '' ? [] : modes.split(',');
  const unknown = options.find((option) => !KNOWN_MODES.has(option));
  if (unknown !== undefined || (options.includes('ro') && options.includes('rw'))) {
    throw new EngineError('invalid', `invalid mode: ${modes}`);
  }
  const destination = checkedDestination(second, bind);
  const writable = !options.includes('ro');
  if (!first.startsWith('/') && options.some((option) => PROPAGATIONS.has(option))) {
    throw new EngineError('invalid', `invalid volume specification: '${bind}': a volume has no propagation mode`);
  }
  if (!first.startsWith('/'))
    return {
      ...volumeMount(first, destination, modes === '' ? 'z' : modes, writable),
      copyUp: !options.includes('nocopy'),
    };
  return {
    type: 'bind',
    source: posix.normalize(first),
    destination,
    mode: modes,
    writable,
    propagation: options.find((option) => PROPAGATIONS.has(option)) ?? 'rprivate',
    copyUp: false,
    anonymous: false,
  };
}

/** A volume at a path of the container; an empty name stands for one that is made for it. */
export function volumeMount(name: string, destination: string, mode: string, writable: boolean): MountPoint {
  return {
    type: 'volume',
    name,
    source: '',
    destination: posix.normalize(destination),
    mode,
    writable,
    propagation: '',
    copyUp: true,
    anonymous: name === '',
  };
}

function checkedDestination(destination: string, bind: string): string {
  if (!destination.startsWith('/'))
    throw new EngineError(
      'invalid',
      `invalid volume specification: '${bind}': invalid mount config for type "bind": invalid mount path: '${destination}' mount path must be absolute`,
    );
  const path = posix.normalize(destination);
  if (path === '/')
    throw new EngineError(
      'invalid',
      `invalid volume specification: '${bind}': invalid specification: destination can't be '/'`,
    );
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

function invalid(bind: string): EngineError {
  return new EngineError('invalid', `invalid volume specification: '${bind}'`);
}
