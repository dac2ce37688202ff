import { EngineError } from '../../lib/errors.ts';
import { isContainerName } from '../../lib/notations/names.ts';

/** The name without its slash. Throws `invalid` for an invalid name. */
export function containerName(written: string): string {
  const name = written.replace(/^\//, '');
  if (!isContainerName(name)) {
    throw new EngineError(
      'invalid',
      `Invalid container name (${written}), only [a-zA-Z0-9_-][a-zA-Z0-9_.-]* are allowed`,
    );
  }
  return name;
}
