import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';

/** The runtime could not start the process. `exitCode` is what a shell would say: 126, 127, or 128 for the rest. */
export class StartFailed extends Error {
  readonly exitCode: 126 | 127 | 128;

  constructor(message: string, exitCode: 126 | 127 | 128) {
    super(message);
    this.name = 'StartFailed';
    this.exitCode = exitCode;
  }
}

/** Reads why from the runtime's own log (JSON lines), in the words of the engine that clients know. */
export function startFailure(directory: string, kind: 'container' | 'exec'): StartFailed {
  const reason = lastError(directory) ?? 'the runtime ended without a message';
  const step = kind === 'exec' ? 'OCI runtime exec failed' : 'OCI runtime create failed';
  return new StartFailed(`${step}: ${reason}: unknown`, exitCodeFor(reason));
}

function lastError(directory: string): string | undefined {
  const errors = readLog(directory)
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { level?: string; msg?: string })
    .filter(({ level }) => level === 'error' || level === 'fatal');
  return errors.at(-1)?.msg;
}

function readLog(directory: string): string {
  try {
    return readFileSync(join(directory, 'runtime.log'), 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '';
    throw error;
  }
}

/** The same words that dockerd looks for: the runtime has no other way to say it. */
function exitCodeFor(reason: string): 126 | 127 | 128 {
  if (/executable file not found|no such file or directory|system cannot find the file/i.test(reason)) return 127;
  if (/permission denied|is a directory|exec format error|not a directory/i.test(reason)) return 126;
  return 128;
}
