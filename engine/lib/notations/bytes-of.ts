import { EngineError } from '../errors.ts';

const SIZE = /^(?<number>\d+(?:\.\d+)?) ?(?<unit>[kmgtp]?)(?:i?b)?$/i;
const UNITS = ['', 'k', 'm', 'g', 't', 'p'];

/** The bytes that an option such as `10m` names, in units of 1024. Throws `invalid`. */
export function bytesOf(option: string, text: string): number {
  const match = SIZE.exec(text)?.groups;
  if (match === undefined) throw new EngineError('invalid', `invalid ${option}: '${text}'`);
  return Math.trunc(Number(match.number) * 1024 ** UNITS.indexOf((match.unit ?? '').toLowerCase()));
}
