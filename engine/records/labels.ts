import { EngineError } from '../lib/errors.ts';

/** Each label is in the record, in events and in answers. An image that is built has no more either. */
const MAX_LABELS = 20_000;

/** Call it before they are copied. Throws `invalid`. */
export function refuseManyLabels(labels: object | null | undefined, subject: string): void {
  if (Object.keys(labels ?? {}).length <= MAX_LABELS) return;
  throw new EngineError('invalid', `${subject} has more than ${MAX_LABELS.toLocaleString('en-US')} labels`);
}
