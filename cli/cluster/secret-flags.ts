import type { ConfigReference, FileTarget, SecretReference } from '@gantry/client/cluster.ts';
import type { Connection } from '@gantry/client/connection.ts';
import * as client from '@gantry/client/secrets.ts';

import { splitOnce } from '../command-line/values.ts';
import { UsageError } from '../exit-codes.ts';

type Wanted = Readonly<{ source: string; file: FileTarget }>;

/** References to secrets, by words such as `NAME` or `source=NAME,target=PATH,uid=0,gid=0,mode=0400`. */
export async function secretReferences(engine: Connection, words: readonly string[]): Promise<SecretReference[]> {
  const found = await resolve(engine, 'secret', words);
  return found.map(({ id, source, file }) => ({ File: file, SecretID: id, SecretName: source }));
}

/** References to configs, by words like those of secrets. */
export async function configReferences(engine: Connection, words: readonly string[]): Promise<ConfigReference[]> {
  const found = await resolve(engine, 'config', words);
  return found.map(({ id, source, file }) => ({ File: file, ConfigID: id, ConfigName: source }));
}

async function resolve(
  engine: Connection,
  kind: client.SecretKind,
  words: readonly string[],
): Promise<(Wanted & { id: string })[]> {
  if (words.length === 0) return [];
  const wanted = words.map((word) => parseReference(kind, word));
  const ids = new Map((await client.listSecrets(engine, kind)).map(({ ID, Spec }) => [Spec.Name, ID]));
  return wanted.map((one) => {
    const id = ids.get(one.source);
    if (id === undefined) throw new UsageError(`${kind} not found: ${one.source}`);
    return { ...one, id };
  });
}

function parseReference(kind: client.SecretKind, word: string): Wanted {
  const plain = { Name: word, UID: '0', GID: '0', Mode: 0o444 };
  if (!/[=,]/.test(word)) return { source: word, file: plain };
  const fields = new Map(word.split(',').map((field) => splitOnce(field, '=')));
  const unknown = [...fields.keys()].find((name) => !['source', 'src', 'target', 'uid', 'gid', 'mode'].includes(name));
  if (unknown !== undefined) throw new UsageError(`invalid field '${unknown}' in the ${kind} '${word}'`);
  const source = fields.get('source') ?? fields.get('src') ?? '';
  if (source === '') throw new UsageError(`the ${kind} '${word}' needs a source`);
  const mode = fields.get('mode') ?? '0444';
  if (!/^0?[0-7]{1,4}$/.test(mode)) throw new UsageError(`invalid mode '${mode}' in the ${kind} '${word}'`);
  const { uid = '0', gid = '0', target = source } = Object.fromEntries(fields);
  return { source, file: { Name: target, UID: uid, GID: gid, Mode: Number.parseInt(mode, 8) } };
}
