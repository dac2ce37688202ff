import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Run } from '../../buildfile/instruction.ts';
import { heredocOf } from '../../buildfile/lines/heredocs.ts';
import { EngineError } from '../../lib/errors.ts';
import { newId, shortId } from '../../lib/ids.ts';
import type { Build } from '../build.ts';

/**
 * The words to run, with here-documents: a single one is a script, for the shell which starts the program behind its `#!`;
 * others become part of the command, for the shell.
 */
export async function runScript(
  build: Build,
  { command, heredocs }: Run,
  commandLine: readonly string[],
): Promise<{ words: string[]; binds: string[] }> {
  const [first] = heredocs;
  if (first === undefined) return { words: [...commandLine], binds: [] };
  if (!command.isForShell) throw new EngineError('invalid', 'a here-document needs a command for the shell');
  const shell = commandLine.slice(0, -1);
  const text = command.words[0]!;
  const alone = heredocOf(text.trim(), build.plan.escape);
  if (alone === undefined) {
    // The shell itself takes the tabs away.
    const whole = heredocs.reduce((script, { name, written }) => `${script}\n${written}${name}`, text);
    return { words: [...shell, whole], binds: [] };
  }
  if (!first.content.startsWith('#!')) return { words: [...shell, first.content], binds: [] };
  if (first.name.includes('/')) throw new EngineError('invalid', `a script cannot be called ${first.name}`);
  const file = join(build.folder, shortId(newId()));
  await writeFile(file, first.content);
  await chmod(file, 0o755); // regardless of the umask: the step's user runs it
  const place = `/dev/pipes/${first.name}`;
  return { words: [...shell, place], binds: [`${file}:${place}:ro`] };
}
