import { EngineError } from '../../lib/errors.ts';

/** The `version` of an update, refused in dockerd's words. */
export function readVersion(of: string, text = ''): number {
  if (!/^\d{1,15}$/.test(text)) {
    throw new EngineError(
      'invalid',
      `invalid ${of} version '${text}': strconv.ParseUint: parsing "${text}": invalid syntax`,
    );
  }
  return Number(text);
}
