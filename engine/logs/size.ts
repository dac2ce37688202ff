import { EngineError } from '../lib/errors.ts';

const SIZE = /^(?<number>\d+(?:\.\d+)?) ?(?<unit>[kmgtp]?)(?:i?b)?$/i;
const UNITS = ['', 'k', 'm', 'g', 't', 'p'];

/** The bytes that a log option such as `10m` names. Throws `invalid`. */
export function bytesOf(option: string, text: string): number {
  const match = SIZE.exec(text)?.groups;
  if (match === undefined) throw new EngineError('invalid', `invalid ${option}: '${text}'`);
  return Math.trunc(Number(match.number) * 1024 ** UNITS.indexOf((match.unit ?? '').toLowerCase()));
}
