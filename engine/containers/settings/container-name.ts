import { EngineError } from '../../lib/errors.ts';

const NAME = /^\/?[a-zA-Z0-9_-][a-zA-Z0-9_.-]*$/;

/** The name without its slash. Throws `invalid` for an invalid name. */
export function containerName(written: string): string {
  if (!NAME.test(written)) {
    throw new EngineError(
      'invalid',
      `Invalid container name (${written}), only [a-zA-Z0-9_-][a-zA-Z0-9_.-]* are allowed`,
    );
  }
  return written.replace(/^\//, '');
}
