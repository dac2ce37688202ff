import { readFile } from 'node:fs/promises';

import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { reasonOf } from '../failures.ts';

const KEYS: readonly string[] = ['id', 'src', 'source', 'env', 'type'];

/** The header that carries secrets of a build to the engine: each from a file or from a variable of the environment. */
export async function secretsHeader(written: readonly string[]): Promise<Record<string, string>> {
  if (written.length === 0) return {};
  const secrets = await Promise.all(written.map(async (text) => [...(await secretOf(text))] as const));
  const json = JSON.stringify(Object.fromEntries(secrets.map(([id, content]) => [id, content.toString('base64')])));
  return { 'X-Build-Secrets': Buffer.from(json).toString('base64') };
}

/** `id=token,src=./token`: as docker's builder has it; without a source the file, or the variable, is called as its id. */
async function secretOf(text: string): Promise<[string, Buffer]> {
  const fields = new Map(
    text.split(',').map((field): [string, string] => {
      const [key = '', value = ''] = field.split(/=(.*)/s, 2);
      return [key, value];
    }),
  );
  for (const key of fields.keys()) {
    if (!KEYS.includes(key)) throw new UsageError(`invalid secret ${JSON.stringify(text)}: unexpected key '${key}'`);
  }
  const id = fields.get('id');
  if (!id) throw new UsageError(`invalid secret ${JSON.stringify(text)}: it has no id`);
  const file = fields.get('src') ?? fields.get('source');
  const variable = fields.get('env') ?? (fields.get('type') === 'env' ? (file ?? id) : undefined);
  if (variable !== undefined) {
    const value = process.env[variable];
    if (value === undefined) throw new Exit(EXIT.failed, `secret ${id}: there is no variable ${variable}`);
    return [id, Buffer.from(value)];
  }
  try {
    return [id, await readFile(file ?? id)];
  } catch (error) {
    throw new Exit(EXIT.failed, `secret ${id}: ${reasonOf(error)}`);
  }
}
