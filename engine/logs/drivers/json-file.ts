import { join } from 'node:path';

import { EngineError } from '../../lib/errors.ts';
import { bytesOf } from '../../lib/notations/bytes-of.ts';
import { booleanOption } from '../boolean-option.ts';
import type { LogDriver, LogOptions } from '../driver.ts';
import { attributesText } from '../log-attributes.ts';
import { readLog } from '../log-file.ts';
import { checkTag } from '../tag.ts';

/** Lines of JSON in a file that the shim writes and rotates, byte for byte as dockerd. */
export const jsonFile: LogDriver = {
  name: 'json-file',
  options: ['max-size', 'max-file', 'compress', 'labels', 'labels-regex', 'env', 'env-regex', 'tag'],
  check: checkOptions,
  path: (folder, containerId) => join(folder, `${containerId}-json.log`),
  shimLog: (container) => ({
    path: container.logPath,
    ...logSizes(container.hostConfig.LogConfig.Config),
    compress: booleanOption(container.hostConfig.LogConfig.Config['compress']),
    attributes: attributesText(container),
  }),
  reader:
    ({ logPath }) =>
    (query, follow) =>
      readLog(logPath, query, follow),
  showsPath: true,
};

/** `max-size` in bytes (0: no limit) and `max-file`. Throws `invalid`. */
export function logSizes(options: LogOptions): { maxBytes: number; maxFiles: number } {
  const { 'max-size': size, 'max-file': files = '1' } = options;
  const maxBytes = size === undefined ? 0 : bytesOf('max-size', size);
  if (size !== undefined && maxBytes === 0) throw new EngineError('invalid', 'max-size must be a positive number');
  if (!/^\d+$/.test(files)) throw new EngineError('invalid', `invalid max-file: '${files}'`);
  if (Number(files) < 1) throw new EngineError('invalid', 'max-file cannot be less than 1');
  return { maxBytes, maxFiles: Number(files) };
}

function checkOptions(options: LogOptions): void {
  const { maxBytes, maxFiles } = logSizes(options);
  const compress = options['compress'] ?? 'false';
  if (!/^(1|0|t|f|T|F|true|false|True|False|TRUE|FALSE)$/.test(compress))
    throw new EngineError('invalid', `invalid compress: '${compress}'`);
  if (/^[1t]/i.test(compress) && (maxFiles < 2 || maxBytes === 0)) {
    throw new EngineError('invalid', 'compress cannot be true when max-file is less than 2 or max-size is not set');
  }
  checkTag(options['tag']);
}
