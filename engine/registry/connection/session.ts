import type { Config } from '../../config/daemon-config.ts';
import type { Engine } from '../../engine.ts';
import type { Clock } from '../../lib/clock.ts';
import { Authorizer } from '../auth/authorizer.ts';
import { parseChallenges } from '../auth/challenge.ts';
import type { Credentials } from '../auth/credentials.ts';
import { refusalOf, RegistryError, TOKEN_PREFIX, Unreachable } from '../errors.ts';
import { certificatesOf } from './certificates.ts';
import type { Answer, Sent } from './direct.ts';
import { endpointsOf, type Endpoint } from './endpoints.ts';
import { discard, readText } from './read-body.ts';
import { isTransient, Retries } from './retry.ts';
import { Transport } from './transport.ts';

type Needs = Pick<Engine, 'clock'> & {
  config: Pick<Config, 'insecureRegistries' | 'registryMirrors' | 'registryCertificates'>;
};

export type Ask = Omit<Sent, 'headers' | 'signal'> & {
  headers?: Record<string, string>;
  /** Such as `repository:a/b:pull`. */
  scopes: readonly string[];
  signal: AbortSignal;
  /** Called before a wait. */
  onRetry?: (seconds: number) => void;
};

const ERROR_BYTES = 64 * 1024;

/** A session with one address of a registry: its connections stay open until its last holder disposes it. */
export class RegistrySession implements Disposable {
  readonly endpoint: Endpoint;
  readonly authorizer: Authorizer;
  readonly #transport: Transport;
  readonly #clock: Clock;
  #holders = 1;

  private constructor(endpoint: Endpoint, transport: Transport, authorizer: Authorizer, clock: Clock) {
    this.endpoint = endpoint;
    this.#transport = transport;
    this.authorizer = authorizer;
    this.#clock = clock;
  }

  /** Opens a session and asks the registry for its way of authentication. Mirrors get no credentials. */
  static async open(
    engine: Needs,
    endpoint: Endpoint,
    credentials: Credentials,
    signal: AbortSignal,
  ): Promise<RegistrySession> {
    const { url, isVerified } = endpoint;
    const certificates = certificatesOf(engine.config.registryCertificates, url.host);
    const transport = new Transport(url.host, certificates, isVerified);
    const isSecure = url.protocol === 'https:' && isVerified;
    const authorizer = new Authorizer(transport, credentials, engine.clock, isSecure);
    const session = new RegistrySession(endpoint, transport, authorizer, engine.clock);
    try {
      await session.#ping(signal);
      return session;
    } catch (error) {
      session[Symbol.dispose]();
      throw error;
    }
  }

  /** Keeps the session's connections beyond its owner's use of it. */
  hold(): Disposable {
    this.#holders += 1;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this[Symbol.dispose]();
        isHeld = false;
      },
    };
  }

  address(path: string): URL {
    return new URL(path, this.endpoint.url);
  }

  /**
   * Sends a request with its authorization, and repeats it after temporary failures; a request with a stream as its
   * body is sent only once. Throws for a status of 400 or more.
   */
  async ask(url: URL, ask: Ask): Promise<Answer> {
    const canRepeat = ask.body === undefined || Buffer.isBuffer(ask.body);
    const retries = new Retries({ clock: this.#clock, signal: ask.signal, onRetry: ask.onRetry });
    for (;;) {
      try {
        const answer = await this.#authorized(url, ask);
        if (answer.statusCode < 400) return answer;
        throw await this.#refusal(answer);
      } catch (error) {
        if (!canRepeat || !isTransient(error)) throw error;
        await retries.pause(error);
      }
    }
  }

  [Symbol.dispose](): void {
    this.#holders -= 1;
    if (this.#holders === 0) this.#transport[Symbol.dispose]();
  }

  /** A challenge in the answer is met once: a token may have expired, or be needed for this path only. */
  async #authorized(url: URL, { scopes, headers = {}, ...sent }: Ask): Promise<Answer> {
    const isOurs = url.origin === this.endpoint.url.origin;
    const send = async (): Promise<Answer> => {
      const authorization = isOurs ? await this.#authorization(url, scopes, sent) : undefined;
      const all = { ...headers, ...(authorization !== undefined && { authorization }) };
      return await this.#transport.send(url, { ...sent, headers: all });
    };
    const answer = await send();
    const challenges = parseChallenges(answer.headers['www-authenticate']);
    const canRepeat = sent.body === undefined || Buffer.isBuffer(sent.body);
    if (answer.statusCode !== 401 || challenges.length === 0 || !isOurs || !canRepeat) return answer;
    const isBasic = challenges.every(({ scheme }) => scheme === 'basic');
    const hadCredentials = isBasic && this.#isBasic;
    this.#learn(challenges);
    if (hadCredentials) return answer; // the credentials are wrong
    await discard(answer);
    return await send();
  }

  #isBasic = false;

  #learn(challenges: ReturnType<typeof parseChallenges>): void {
    this.#isBasic = challenges.length > 0 && challenges.every(({ scheme }) => scheme === 'basic');
    this.authorizer.challenged(challenges);
  }

  async #authorization(
    url: URL,
    scopes: readonly string[],
    { method, signal }: Pick<Sent, 'method' | 'signal'>,
  ): Promise<string | undefined> {
    try {
      return await this.authorizer.header(scopes, signal);
    } catch (error) {
      if (!(error instanceof RegistryError) || error instanceof Unreachable) throw error;
      const verb = `${method[0]}${method.slice(1).toLowerCase()}`;
      const { code, status, retryAfter } = error;
      throw new RegistryError(`${verb} "${url.origin}${url.pathname}": ${error.message}`, {
        code: `${TOKEN_PREFIX}${code}`,
        status,
        retryAfter,
        cause: error,
      });
    }
  }

  async #refusal(answer: Answer): Promise<RegistryError> {
    const body = await readText(answer, ERROR_BYTES, 'the refusal of the registry');
    const bearer = parseChallenges(answer.headers['www-authenticate']).find(({ scheme }) => scheme === 'bearer');
    const { statusCode: status, statusText } = answer;
    const retryAfter = answer.headers['retry-after'];
    return refusalOf({ status, statusText, body, challenge: bearer?.parameters, retryAfter });
  }

  async #ping(signal: AbortSignal): Promise<void> {
    const answer = await this.#transport.send(this.address('/v2/'), { method: 'GET', signal });
    await discard(answer);
    this.#learn(parseChallenges(answer.headers['www-authenticate']));
  }
}

/**
 * Runs `work` with the first address of a registry that answers. After any failure of a mirror the next address is
 * tried; the answer of the registry itself is final.
 */
export async function withRegistry<T>(
  engine: Needs,
  {
    host,
    credentials,
    useMirrors,
    signal,
  }: { host: string; credentials: Credentials; useMirrors: boolean; signal: AbortSignal },
  work: (session: RegistrySession) => Promise<T>,
): Promise<T> {
  let failure: unknown;
  for (const endpoint of await endpointsOf(host, engine.config, useMirrors)) {
    let session;
    try {
      const shown = endpoint.isMirror
        ? { username: '', password: '', identityToken: '', registryToken: '' }
        : credentials;
      session = await RegistrySession.open(engine, endpoint, shown, signal);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      failure = error;
      continue;
    }
    using _session = session;
    try {
      return await work(session);
    } catch (error) {
      if (!endpoint.isMirror || signal.aborted) throw error;
      failure = error;
    }
  }
  throw failure;
}
