import type { Connection, Query } from './connection.ts';

type Texts = Record<string, string>;

/** Secrets and configs have the same endpoints. */
export type SecretKind = 'secret' | 'config';
export type SecretBody = {
  Name: string;
  Labels?: Texts;
  /** Base64. */
  Data: string;
  Templating?: { Name: string };
};
type SecretWire = {
  ID: string;
  Version: { Index: number };
  CreatedAt: string;
  UpdatedAt: string;
  Spec: { Name: string; Labels: Texts; Data?: string; Templating?: { Name: string; Options?: Texts } };
};

/** First versions of the API that have the endpoints. */
const SINCE: Readonly<Record<SecretKind, string>> = { secret: '1.25', config: '1.30' };

/** GET /secrets, /configs. */
export async function listSecrets(engine: Connection, kind: SecretKind, query: Query = {}): Promise<SecretWire[]> {
  return await engine.call('GET', `/${kind}s`, { query, version: SINCE[kind] });
}

/** POST /secrets/create, /configs/create. */
export async function createSecret(engine: Connection, kind: SecretKind, body: SecretBody): Promise<{ ID: string }> {
  return await engine.call('POST', `/${kind}s/create`, { body, version: SINCE[kind] });
}

/** GET /secrets/{ref}, /configs/{ref}. */
export async function inspectSecret(engine: Connection, kind: SecretKind, ref: string): Promise<SecretWire> {
  return await engine.call('GET', `/${kind}s/${encodeURIComponent(ref)}`, { version: SINCE[kind] });
}

/** POST /secrets/{id}/update, /configs/{id}/update. Only labels may change. */
export async function updateSecret(
  engine: Connection,
  kind: SecretKind,
  { ID, Version, Spec }: SecretWire,
  labels: Texts,
): Promise<void> {
  const body = { Name: Spec.Name, Labels: labels };
  await engine.call('POST', `/${kind}s/${ID}/update`, {
    query: { version: Version.Index },
    body,
    version: SINCE[kind],
  });
}

/** DELETE /secrets/{ref}, /configs/{ref}. */
export async function removeSecret(engine: Connection, kind: SecretKind, ref: string): Promise<void> {
  await engine.call('DELETE', `/${kind}s/${encodeURIComponent(ref)}`, { version: SINCE[kind] });
}
