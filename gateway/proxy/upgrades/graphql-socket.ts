import { Transform, type TransformCallback } from 'node:stream';

import type { Refusal } from '@gantry/limiter/types.ts';

import { MAX_SCAN_BYTES } from '../../routes/graphql-cost.ts';
import { requestIn } from '../../routes/graphql.ts';
import { objectIn, stringIn } from '../../routes/outermost-json.ts';
import type { Exchange } from '../exchange.ts';
import { type Frame, frameAt, type InsertingMessages, isControl, textFrame, unmask } from './websocket-frames.ts';

/** GraphQL over WebSocket: the protocol of graphql-ws, and that of the older subscriptions-transport-ws. */
const PROTOCOLS = new Set(['graphql-transport-ws', 'graphql-ws']);
/** Messages that start an operation, one of each protocol. */
const OPERATIONS = new Set(['subscribe', 'start']);
/** Messages that start no operation. */
const OTHERS = new Set(['connection_init', 'ping', 'pong', 'complete', 'stop', 'connection_terminate']);

/** Whether this upgrade is GraphQL over WebSocket and its operations are to be counted. */
export function isMetered({ req, policy, decision, target }: Exchange): boolean {
  if (!policy.graphqlCost.byOperation || req.headers.upgrade?.toLowerCase() !== 'websocket') return false;
  const isGraphql =
    decision === undefined
      ? policy.routes.find(req.method ?? 'GET', target).kind === 'graphql'
      : decision.endpoint === policy.routes.graphql;
  const offered = req.headers['sec-websocket-protocol']?.split(',').map((name) => name.trim().toLowerCase()) ?? [];
  return isGraphql && offered.length > 0 && offered.every((name) => PROTOCOLS.has(name));
}

/**
 * The client's side of a WebSocket. Each message that starts an operation is decided like a request. One that is
 * refused is answered with the error message of its protocol and not forwarded; the connection stays open.
 */
export class MeteredMessages extends Transform {
  readonly #exchange: Exchange;
  readonly #toClient: InsertingMessages;
  #bytes: Buffer = Buffer.alloc(0);
  /** Frames of an incomplete message: as received, and unmasked. */
  #frames: Buffer[] = [];
  #payloads: Buffer[] = [];
  /** Bytes of the frames with their heads: a message may have any number of empty ones. */
  #size = 0;
  /** The message is too long to be buffered: it was counted, and the rest of it is forwarded. */
  #isPassing = false;
  #payloadLeft = 0;

  constructor(exchange: Exchange, toClient: InsertingMessages) {
    super();
    this.#exchange = exchange;
    this.#toClient = toClient;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    void this.#readAll(chunk, done);
  }

  async #readAll(chunk: Buffer, done: TransformCallback): Promise<void> {
    let failure: unknown;
    try {
      await this.#read(chunk);
    } catch (error) {
      failure = error;
    }
    if (failure instanceof Error) done(failure);
    else done();
  }

  async #read(chunk: Buffer): Promise<void> {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    for (;;) {
      if (this.#payloadLeft > 0) {
        const part = this.#bytes.subarray(0, this.#payloadLeft);
        this.#payloadLeft -= part.length;
        this.#bytes = this.#bytes.subarray(part.length);
        this.push(part);
      }
      const frame = frameAt(this.#bytes);
      if (frame === undefined || this.#payloadLeft > 0) return;
      const bytes = frame.headBytes + frame.payloadBytes;
      const isTooLong = this.#size + bytes > MAX_SCAN_BYTES;
      if (!isControl(frame) && (this.#isPassing || isTooLong || frame.isExtended)) {
        if (!this.#isPassing && !(await this.#admits(undefined))) return this.#close();
        this.#passOn(frame);
      } else if (this.#bytes.length < bytes) return;
      else {
        const whole = this.#bytes.subarray(0, bytes);
        this.#bytes = this.#bytes.subarray(bytes);
        if (isControl(frame)) this.push(whole);
        else await this.#hold(frame, whole);
      }
    }
  }

  /** Forwards the head of this frame and the buffered part of its message; the payload follows as it arrives. */
  #passOn(frame: Frame): void {
    for (const held of this.#frames.splice(0)) this.push(held);
    this.#payloads = [];
    this.#size = 0;
    this.push(this.#bytes.subarray(0, frame.headBytes));
    this.#bytes = this.#bytes.subarray(frame.headBytes);
    this.#payloadLeft = frame.payloadBytes;
    this.#isPassing = !frame.isLast;
  }

  async #hold(frame: Frame, whole: Buffer): Promise<void> {
    this.#frames.push(whole);
    this.#payloads.push(unmask(whole.subarray(frame.headBytes), frame.mask));
    this.#size += whole.length;
    if (!frame.isLast) return;
    const message = Buffer.concat(this.#payloads).toString('utf8');
    const frames = this.#frames;
    this.#frames = [];
    this.#payloads = [];
    this.#size = 0;
    if (await this.#admits(message)) for (const each of frames) this.push(each);
  }

  /** Undefined: the message was not read. */
  async #admits(message: string | undefined): Promise<boolean> {
    const { gateway, policy, caller } = this.#exchange;
    const values = message === undefined ? undefined : objectIn(message);
    const type = stringIn(values?.get('type') ?? '') ?? '';
    if (OTHERS.has(type)) return true;
    const request = OPERATIONS.has(type) ? requestIn(values?.get('payload') ?? '') : undefined;
    const points = request === undefined ? policy.graphqlCost.unread : policy.graphqlCost.ofRequest(request);
    const decision = await gateway.limiter.admit(caller, policy.routes.graphql, points);
    if (decision.allowed) {
      decision.end(0); // the connection counts as under way
      return true;
    }
    gateway.log.refusal(decision);
    this.#tell(type, stringIn(values?.get('id') ?? '') ?? '', decision);
    return false;
  }

  #tell(type: string, id: string, { kind, retryAfterSeconds }: Refusal): void {
    const message = kind === 'primary' ? 'API rate limit exceeded.' : 'You have exceeded a secondary rate limit.';
    const error = { message, extensions: { code: 'RATE_LIMITED', retryAfterSeconds } };
    const payload = type === 'start' ? error : [error];
    this.#toClient.insert(textFrame(JSON.stringify({ id, type: 'error', payload })));
  }

  /** The id of a message that is too long to be buffered is unknown. */
  #close(): void {
    this.destroy();
  }
}
