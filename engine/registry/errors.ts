import { parseBoundedJson } from '../lib/bounded-json.ts';
import { EngineError } from '../lib/errors.ts';
import { isUnknownHost, messageOf } from '../lib/failure-message.ts';

type Details = { code?: string; status?: number; retryAfter?: string | undefined; cause?: unknown };

/** A refusal by a registry, with its code such as `MANIFEST_UNKNOWN`; the text is dockerd's. */
export class RegistryError extends EngineError {
  readonly code: string;
  readonly status: number;
  /** When the registry wants to be asked again, in its own form. */
  readonly retryAfter: string | undefined;

  constructor(message: string, { code = '', status = 0, retryAfter, cause }: Details = {}) {
    super('failed', message, { cause });
    this.name = 'RegistryError';
    this.code = code;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** The registry cannot be reached; another address of it may answer. */
export class Unreachable extends RegistryError {}

/** Begins the codes of refusals by the token server. */
export const TOKEN_PREFIX = 'TOKEN_';

/** Whether the token server has refused, not the registry. */
export function isOfTokenServer({ code }: RegistryError): boolean {
  return code.startsWith(TOKEN_PREFIX);
}

const DEFAULT_TEXTS: ReadonlyMap<string, string> = new Map([
  ['UNAUTHORIZED', 'authentication required'],
  ['DENIED', 'requested access to the resource is denied'],
  ['TOOMANYREQUESTS', 'too many requests'],
]);
/** The codes of the errors that a challenge names. */
const CHALLENGES: ReadonlyMap<string, string> = new Map([
  ['invalid_token', 'UNAUTHORIZED'],
  ['insufficient_scope', 'DENIED'],
]);
const CODES: Readonly<Record<number, string>> = { 401: 'UNAUTHORIZED', 403: 'DENIED', 429: 'TOOMANYREQUESTS' };
const SHOWN_BYTES = 1000;
const SHOWN_TEXT_BYTES = 200;

type Refused = {
  status: number;
  statusText: string;
  body: string;
  retryAfter?: string | undefined;
  challenge: Readonly<Record<string, string>> | undefined;
};

/** The error of an answer with a status of 400 or more. */
export function refusalOf({ status, statusText, body, challenge, retryAfter }: Refused): RegistryError {
  if (status >= 500) {
    const reason = reasonIn(body);
    const text = `received unexpected HTTP status: ${status} ${statusText}${reason === '' ? '' : `: ${reason}`}`;
    return new RegistryError(text, { status, retryAfter });
  }
  const told = CHALLENGES.get(challenge?.error ?? '');
  if (told !== undefined) return coded(told, challenge?.error_description, { status, retryAfter });
  const json = parseBody(body);
  const [first] = Array.isArray(json.errors) ? (json.errors as unknown[]) : [];
  if (typeof first === 'object' && first !== null && 'code' in first) {
    const { code, message } = first as { code: unknown; message?: unknown };
    return coded(String(code), typeof message === 'string' ? message : undefined, { status, retryAfter });
  }
  const known = CODES[status];
  if (known !== undefined)
    return coded(known, typeof json.details === 'string' ? json.details : undefined, { status, retryAfter });
  const shown = JSON.stringify(body.slice(0, SHOWN_BYTES));
  return new RegistryError(`error parsing HTTP ${status} response body: ${shown}`, { status, retryAfter });
}

/** The server's own words, as JSON or as a short plain text; proxies answer with whole pages. */
function reasonIn(body: string): string {
  const json = parseBody(body);
  const [first] = Array.isArray(json.errors) ? (json.errors as unknown[]) : [];
  const told = typeof first === 'object' && first !== null && 'message' in first ? first.message : json.details;
  if (typeof told === 'string') return oneLine(told);
  return Object.keys(json).length > 0 || body.length > SHOWN_TEXT_BYTES || body.includes('<') ? '' : oneLine(body);
}

function oneLine(text: string): string {
  return text
    .slice(0, SHOWN_BYTES)
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim();
}

function coded(code: string, message: string | undefined, details: Details): RegistryError {
  const words = code.toLowerCase().replaceAll('_', ' ');
  return new RegistryError(`${words}: ${message || (DEFAULT_TEXTS.get(code) ?? words)}`, { ...details, code });
}

function parseBody(body: string): Record<string, unknown> {
  try {
    const json = parseBoundedJson(body);
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : {};
  } catch {
    return {}; // the body is shown as it is
  }
}

/** Why a connection failed, in the words that clients know from dockerd. */
export function reasonOf(error: unknown, url: URL): string {
  const found = innermost(error);
  const code = 'code' in found ? String(found.code) : '';
  const { address = url.hostname, port = Number(url.port || (url.protocol === 'https:' ? 443 : 80)) } = found as {
    address?: string;
    port?: number;
  };
  if (code === 'ECONNREFUSED') return `dial tcp ${address}:${port}: connect: connection refused`;
  if (isUnknownHost(found)) return `dial tcp: lookup ${url.hostname}: no such host`;
  if (code === 'ENETUNREACH') return `dial tcp ${address}:${port}: connect: network is unreachable`;
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/.test(code))
    return 'http: server gave HTTP response to HTTPS client';
  if (/SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|ISSUER/.test(code)) {
    return 'x509: certificate signed by unknown authority';
  }
  return messageOf(found) || code || found.name;
}

function innermost(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const next = error instanceof AggregateError ? (error.errors[0] as unknown) : error.cause;
  return next instanceof Error ? innermost(next) : error;
}
