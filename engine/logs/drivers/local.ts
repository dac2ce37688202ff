import { join } from 'node:path';

import { EngineError } from '../../lib/errors.ts';
import { bytesOf } from '../../lib/notations/bytes-of.ts';
import { booleanOption } from '../boolean-option.ts';
import type { LogDriver, LogOptions } from '../driver.ts';
import { readLog } from '../log-file.ts';

const DEFAULT_BYTES = 20 * 1024 * 1024;
const DEFAULT_FILES = 5;

/** Files in a private format, bounded by default. */
export const local: LogDriver = {
  name: 'local',
  options: ['max-size', 'max-file', 'compress'],
  unknown: (option) => `unknown log opt '${option}' for log driver local`,
  check: (options) => void sizesOf(options),
  path: (folder) => join(folder, 'local-logs', 'container.log'),
  showsPath: false,
  shimLog: ({ logPath, hostConfig }) => ({ path: logPath, ...sizesOf(hostConfig.LogConfig.Config) }),
  reader:
    ({ logPath }) =>
    (query, follow) =>
      readLog(logPath, query, follow),
};

/** Throws `invalid`, as dockerd does when the container starts. */
function sizesOf(options: LogOptions): { maxBytes: number; maxFiles: number } {
  const { 'max-size': size, 'max-file': files = String(DEFAULT_FILES), compress = 'true' } = options;
  const maxBytes = size === undefined ? DEFAULT_BYTES : sizeOf(size);
  if (!/^[-+]?\d{1,9}$/.test(files)) {
    const reason = `strconv.Atoi: parsing ${JSON.stringify(files)}: invalid syntax`;
    throw new EngineError('invalid', `invalid value for max-file: ${files}: ${reason}`);
  }
  if (Number(files) < 0) throw new EngineError('invalid', 'max file count cannot be less than 0');
  if (isCompressed(compress) && Number(files) <= 1) {
    throw new EngineError('invalid', 'compression cannot be enabled when max file count is 1');
  }
  return { maxBytes, maxFiles: Math.max(Number(files), 1) };
}

function sizeOf(written: string): number {
  try {
    return bytesOf('max-size', written);
  } catch (error) {
    const reason = `invalid size: '${written}'`;
    throw new EngineError('invalid', `invalid value for max-size: ${written}: ${reason}`, { cause: error });
  }
}

function isCompressed(written: string): boolean {
  try {
    return booleanOption(written);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new EngineError('invalid', `error reading compress log option: ${reason}`, { cause: error });
  }
}
