import { Agent, request } from 'node:https';
import type { Duplex, Readable } from 'node:stream';

import type { Static, TSchema } from 'typebox';

import { readWhole } from '../../lib/bytes/read-whole.ts';
import type { Clock } from '../../lib/clock.ts';
import { EngineError, type ErrorKind } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { parseLine } from './channel.ts';
import { Refusal } from './schemas.ts';

/** PEM. Without a certificate the client is anonymous; without a root it believes any server. */
type Trust = Readonly<{ root?: string; certificate?: string; key?: string }>;

/** The manager does not lead; it may know who does. */
export class NotLeader extends Error {
  readonly leader: string | undefined;

  constructor(leader: string | undefined) {
    super('the manager does not lead');
    this.leader = leader;
  }
}

/** No manager has taken the request: it may be sent to another one. */
export class NotReached extends Error {}

const refusalCheck = lazyCheck(Refusal);
const MAX_ANSWER_LENGTH = 4 * 1024 * 1024;
const MAX_ANSWER_VALUES = 100_000;
const KINDS: ReadonlySet<string> = new Set<ErrorKind>([
  'invalid',
  'notFound',
  'conflict',
  'forbidden',
  'failed',
  'unavailable',
  'notInCluster',
  'notImplemented',
]);

const REASONS: ReadonlyMap<unknown, string> = new Map([
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'it is no manager of this cluster'],
  ['CERT_HAS_EXPIRED', "its certificate or the cluster's root has expired: compare the clocks of both machines"],
  ['CERT_NOT_YET_VALID', "its certificate or the cluster's root is not yet valid: compare the clocks of both machines"],
]);

/** The client of port 2377 of managers: a server has to prove that it is a manager of the cluster. */
export class WireClient implements Disposable {
  readonly #clock: Clock;
  #agent: Agent;

  constructor(trust: Trust, clock: Clock) {
    this.#clock = clock;
    this.#agent = agentOf(trust);
  }

  /** Takes another certificate from the next connection on. */
  use(trust: Trust): void {
    this.#agent.destroy();
    this.#agent = agentOf(trust);
  }

  /** Sends `body` as JSON, or asks with GET without one. After `signal` no answer is waited for. */
  async ask<S extends TSchema>(
    address: string,
    path: string,
    body: unknown,
    answer: S,
    milliseconds = 10_000,
    signal?: AbortSignal,
  ): Promise<Static<S>> {
    const { status, text } = await this.#request(address, path, body, milliseconds, signal);
    const value = text === '' ? {} : parseLine(text, MAX_ANSWER_VALUES);
    if (status >= 400) throw refusalOf(status, value);
    if (!lazyCheck(answer).Check(value)) throw new Error(`${address} answers ${path} in a way that is not understood`);
    return value;
  }

  /** A connection on which both sides talk from then on. */
  async upgrade(address: string, path: string, milliseconds: number): Promise<Duplex> {
    const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
    const outgoing = request(`https://${address}${path}`, {
      method: 'POST',
      agent: this.#agent,
      headers: { Connection: 'Upgrade', Upgrade: 'gantry-session', 'Content-Length': '0' },
    });
    using _late = this.#clock.after(milliseconds, () => outgoing.destroy(new NotReached(`${address} does not answer`)));
    outgoing.once('upgrade', (_answer, socket, head) => {
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    outgoing.once('response', (response) => {
      textOf(response)
        .then((text) => reject(refusalOf(response.statusCode ?? 500, parseLine(text, MAX_ANSWER_VALUES))))
        .catch(reject);
    });
    outgoing.once('error', (error) => reject(notReached(error, address)));
    outgoing.end();
    return await promise;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  async #request(
    address: string,
    path: string,
    body: unknown,
    milliseconds: number,
    signal?: AbortSignal,
  ): Promise<{ status: number; text: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    let isSent = false;
    const outgoing = request(`https://${address}${path}`, {
      method: payload === undefined ? 'GET' : 'POST',
      agent: this.#agent,
      headers: payload === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': payload.length },
    });
    const giveUp = (said: string): void =>
      void outgoing.destroy(isSent ? new EngineError('unavailable', said) : new NotReached(said));
    const late = `${address} has not answered ${path} for ${milliseconds / 1000} s`;
    using _late = this.#clock.after(milliseconds, () => giveUp(late));
    const over = (): void => giveUp(String(signal?.reason));
    signal?.addEventListener('abort', over, { once: true });
    outgoing.once('socket', (socket) => {
      if ('authorized' in socket && socket.authorized === true) isSent = true;
      else socket.once('secureConnect', () => (isSent = true));
    });
    outgoing.once('response', (response) => {
      textOf(response).then((text) => resolve({ status: response.statusCode ?? 500, text }), reject);
    });
    outgoing.once('error', (error) =>
      reject(isSent && payload !== undefined ? brokenOff(error, address) : notReached(error, address)),
    );
    outgoing.end(payload);
    return await promise;
  }
}

function agentOf({ root, certificate, key }: Trust): Agent {
  return new Agent({
    keepAlive: true,
    maxFreeSockets: 4,
    servername: 'swarm-manager',
    minVersion: 'TLSv1.3',
    ...(root === undefined ? { rejectUnauthorized: false } : { ca: root }),
    ...(certificate === undefined || key === undefined ? {} : { cert: certificate, key }),
  });
}

/** The manager may have done what it was asked. */
function brokenOff(error: Error, address: string): Error {
  if (error instanceof EngineError) return error;
  const said = `the connection to manager ${address} broke (${messageOf(error)}): look whether this was done`;
  return new EngineError('unavailable', said, { cause: error });
}

function notReached(error: Error, address: string): Error {
  if (error instanceof NotReached || error instanceof EngineError) return error;
  const reason = 'code' in error ? REASONS.get(error.code) : undefined;
  return new NotReached(`${address}: ${reason ?? messageOf(error)}`, { cause: error });
}

function refusalOf(status: number, value: unknown): Error {
  const { kind, message, leader } = refusalCheck.Check(value) ? value : {};
  if (status === 421) return new NotLeader(leader ?? undefined);
  const known = kind !== undefined && KINDS.has(kind) ? (kind as ErrorKind) : 'failed';
  return new EngineError(known, message ?? `a manager answered ${status}`);
}

async function textOf(stream: Readable): Promise<string> {
  const read = await readWhole(stream, MAX_ANSWER_LENGTH);
  if (read !== undefined) return read.toString();
  stream.destroy();
  throw new Error('an answer is larger than 4 MB');
}
