import { EngineError } from '../../lib/errors.ts';

/** Whether an update is to take back the last one, by its query parameter `rollback`. */
export function readRollback(text = ''): boolean {
  if (!['', 'none', 'previous'].includes(text)) throw new EngineError('failed', `unrecognized rollback option ${text}`);
  return text === 'previous';
}
