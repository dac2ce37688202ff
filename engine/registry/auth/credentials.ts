import { Type, type Static } from 'typebox';

import { lazyCheck } from '../../lib/lazy-check.ts';

const text = Type.Optional(Type.Union([Type.String(), Type.Null()]));

const AuthConfig = Type.Object({
  username: text,
  password: text,
  auth: text,
  serveraddress: text,
  identitytoken: text,
  registrytoken: text,
});
type AuthConfig = Static<typeof AuthConfig>;
const checked = lazyCheck(AuthConfig);

/** A client's credentials for a registry. They stay in memory for one request and are never logged. */
export type Credentials = Readonly<{
  username: string;
  password: string;
  /** Replaces the password at the token server. */
  identityToken: string;
  /** Sent to the registry unchanged. */
  registryToken: string;
}>;

export const ANONYMOUS: Credentials = { username: '', password: '', identityToken: '', registryToken: '' };

/** The header `X-Registry-Auth`: base64 of JSON in either alphabet. An unreadable one counts as none, as in dockerd. */
export function parseRegistryAuth(header: string | readonly string[] | undefined): Credentials {
  const encoded = [header].flat()[0] ?? '';
  try {
    const value: unknown = JSON.parse(Buffer.from(encoded, 'base64').toString());
    return credentialsIn(value);
  } catch (error) {
    if (error instanceof SyntaxError) return ANONYMOUS;
    throw error;
  }
}

/** Reads credentials from a parsed value. */
export function credentialsIn(value: unknown): Credentials {
  return checked.Check(value) ? credentialsOf(value) : ANONYMOUS;
}

export function credentialsOf(config: AuthConfig): Credentials {
  // Clients put both into one field in their own file, and some send it so.
  const [name, ...rest] = Buffer.from(config.auth ?? '', 'base64')
    .toString()
    .split(':');
  return {
    username: config.username || name || '',
    password: config.password || rest.join(':').replace(/\0+$/, ''),
    identityToken: config.identitytoken ?? '',
    registryToken: config.registrytoken ?? '',
  };
}
