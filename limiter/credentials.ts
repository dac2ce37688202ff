/** A credential in an Authorization header. */
export type Credential =
  | Readonly<{ kind: 'none' }>
  | Readonly<{ kind: 'token'; token: string }>
  /** Basic: a token in one of its two places, or an app's client id and secret. */
  | Readonly<{ kind: 'basic'; user: string; password: string }>
  | Readonly<{ kind: 'malformed' }>;

const none: Credential = { kind: 'none' };
const malformed: Credential = { kind: 'malformed' };

/** Longer values are no tokens, and are not worth hashing. */
const MAX_LENGTH = 8192;

/** Reads `Bearer`, `token` and `Basic`; everything else is malformed. */
export function credentialIn(authorization: string | undefined): Credential {
  if (authorization === undefined) return none;
  if (authorization.length > MAX_LENGTH) return malformed;
  const space = authorization.indexOf(' ');
  if (space < 0) return malformed;
  const value = authorization.slice(space + 1).trim();
  switch (authorization.slice(0, space).toLowerCase()) {
    case 'bearer':
    case 'token':
      return isToken(value) ? { kind: 'token', token: value } : malformed;
    case 'basic':
      return basicIn(value);
    default:
      return malformed;
  }
}

/** In Basic the token is the password, with any user; or the user, with no password or `x-oauth-basic`. */
export function tokenOf({ user, password }: { user: string; password: string }): string {
  return password === '' || password === 'x-oauth-basic' ? user : password;
}

function basicIn(value: string): Credential {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return malformed;
  const decoded = Buffer.from(value, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  if (colon < 0 || hasControl(decoded)) return malformed;
  return { kind: 'basic', user: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
}

/** Visible ASCII: whatever a forge issues. */
function isToken(value: string): boolean {
  return /^[\x21-\x7e]+$/.test(value);
}

function hasControl(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 32 || code === 127) return true;
  }
  return false;
}
