import { Type } from 'typebox';

import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import { beginningOf, type Plugins } from './plugins.ts';

const Verdict = Type.Object({ Allow: Type.Optional(Type.Boolean()), Msg: Type.Optional(Type.String()) });

/** A client's request as plugins see it. */
export type AuthorizedRequest = Readonly<{
  /** The name in the client's certificate; empty without TLS. */
  user: string;
  method: string;
  uri: string;
  headers: Readonly<Record<string, string>>;
  /** JSON; undefined for a stream, and for a body with secrets. */
  body: Buffer | undefined;
  /** The client's chain, in PEM. */
  certificates: readonly string[];
}>;

type AuthorizedAnswer = Readonly<{
  status: number;
  headers: Readonly<Record<string, string>>;
  /** Undefined for a stream. */
  body: Buffer | undefined;
}>;

/**
 * Asks the authorization plugins, one after the other, about every request and its answer: all of them must agree. No
 * answer is a refusal.
 */
export class Authorization {
  readonly #plugins: Plugins;
  readonly #names: readonly string[];

  constructor(plugins: Plugins, names: readonly string[]) {
    this.#plugins = plugins;
    this.#names = [...new Set(names)];
  }

  /** At the daemon's start, because a missing plugin would refuse everything. Throws `notFound` or `failed`. */
  async check(): Promise<void> {
    for (const name of this.#names) await this.#plugins.get(name, 'authz');
  }

  /** Throws `forbidden` with the plugin's message, or `failed`. `signal`: no plugin has to answer a client that has left. */
  async admit(request: AuthorizedRequest, signal: AbortSignal): Promise<void> {
    const wire = requestWire(request);
    for (const name of this.#names) await this.#ask(name, 'AuthZPlugin.AuthZReq', { wire, signal });
  }

  /** Asks about the answer, before the client gets it; the last plugin is asked first, as in docker. */
  async release(
    request: AuthorizedRequest,
    { status, headers, body }: AuthorizedAnswer,
    signal: AbortSignal,
  ): Promise<void> {
    const wire = {
      ...requestWire(request),
      ResponseStatusCode: status,
      ResponseHeaders: headers,
      ...(body !== undefined && { ResponseBody: body.toString('base64') }),
    };
    for (const name of this.#names.toReversed()) await this.#ask(name, 'AuthZPlugin.AuthZRes', { wire, signal });
  }

  async #ask(
    name: string,
    method: string,
    { wire, signal }: Readonly<{ wire: object; signal: AbortSignal }>,
  ): Promise<void> {
    let verdict: { Allow?: boolean; Msg?: string };
    try {
      verdict = await (await this.#plugins.get(name, 'authz', { signal })).call(method, wire, Verdict, { signal });
    } catch (error) {
      const reason = messageOf(error);
      throw new EngineError('failed', `plugin ${name} failed with error: ${reason}`, { cause: error });
    }
    if (verdict.Allow === true) return;
    throw new EngineError('forbidden', `authorization denied by plugin ${name}: ${beginningOf(verdict.Msg ?? '')}`);
  }
}

function requestWire({ user, method, uri, headers, body, certificates }: AuthorizedRequest): object {
  return {
    ...(user !== '' && { User: user, UserAuthNMethod: 'TLS' }),
    RequestMethod: method,
    RequestUri: uri,
    RequestHeaders: headers,
    ...(body !== undefined && { RequestBody: body.toString('base64') }),
    ...(certificates.length > 0 && { RequestPeerCertificates: certificates }),
  };
}
