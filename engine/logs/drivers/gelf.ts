import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { promisify } from 'node:util';
import { deflate, gzip } from 'node:zlib';

import { EngineError } from '../../lib/errors.ts';
import type { Line } from '../delivery/line.ts';
import type { Sender, SenderContext } from '../delivery/sender.ts';
import type { LogOptions } from '../driver.ts';
import { extraAttributes } from '../log-attributes.ts';
import { hostAndPort, transportUrl, type HostAndPort } from '../receivers/address.ts';
import { Connection } from '../receivers/connection.ts';
import { Datagrams } from '../receivers/datagrams.ts';
import { checkTag, commandOf, tagOf } from '../tag.ts';
import { deliveringDriver } from './delivering.ts';

const INFO = 6;
const ERROR = 3;
const LIMITS = { lines: 500, bytes: 128 * 1024 };

/** The size of a datagram, with the header of a chunk, that every network transports. */
const DATAGRAM_BYTES = 1420;
const CHUNK_HEAD_BYTES = 12;
const MAX_CHUNKS = 128;
const BEST_SPEED = 1;

const compressions = { gzip: promisify(gzip), zlib: promisify(deflate) };

/** The Graylog Extended Log Format, over UDP (compressed, and in chunks) and TCP. */
export const gelf = deliveringDriver({
  name: 'gelf',
  options: [
    'gelf-address',
    'tag',
    'labels',
    'labels-regex',
    'env',
    'env-regex',
    'gelf-compression-level',
    'gelf-compression-type',
    'gelf-tcp-max-reconnect',
    'gelf-tcp-reconnect-delay',
  ],
  unknown: (option) => `unknown log opt ${JSON.stringify(option)} for gelf log driver`,
  check: checkOptions,
  deliver: (context) => (addressOf(context.options).scheme === 'udp' ? udpSender(context) : tcpSender(context)),
});

function udpSender(context: SenderContext): Sender {
  const { options, refused } = context;
  const message = messagesOf(context);
  const tooLong = (): void => refused(1, 'it has more chunks than GELF allows');
  const datagrams = new Datagrams({ ...context, ...addressOf(options), tooLong });
  return {
    limits: LIMITS,
    recalls: true,
    send: async (lines) => {
      for (const line of omitEmptyLines(lines)) {
        const chunks = chunksOf(await compress(Buffer.from(message(line)), options));
        if (chunks.length > MAX_CHUNKS) tooLong();
        else await datagrams.send(chunks);
      }
    },
    end: async () => await datagrams.end(),
    [Symbol.dispose]: () => datagrams[Symbol.dispose](),
  };
}

/** Messages end with a zero byte, and are never compressed. */
function tcpSender(context: SenderContext): Sender {
  const message = messagesOf(context);
  const address = addressOf(context.options);
  const connection = new Connection({ ...context, ready: 'connect', open: () => connect(address) });
  return {
    limits: LIMITS,
    recalls: true,
    send: async (lines) =>
      await connection.write(
        Buffer.from(
          omitEmptyLines(lines)
            .map((line) => `${message(line)}\0`)
            .join(''),
        ),
      ),
    end: async () => await connection.end(),
    [Symbol.dispose]: () => connection[Symbol.dispose](),
  };
}

/** Empty lines are left out, as docker does. */
function omitEmptyLines(lines: readonly Line[]): Line[] {
  return lines.filter(({ text }) => text.length > 0);
}

function messagesOf({ container }: SenderContext): (line: Line) => string {
  const attributes = Object.entries(extraAttributes(container)).map(([key, value]) => [
    key.startsWith('_') ? key : `_${key}`,
    value,
  ]);
  const extra = {
    _command: commandOf(container),
    _container_id: container.id,
    _container_name: container.name,
    _created: container.createdAt.toString(),
    _image_id: container.imageId,
    _image_name: container.imageName,
    _tag: tagOf(container, '{{.ID}}'),
    ...Object.fromEntries(attributes),
  };
  const host = hostname();
  return ({ string, time, source }) =>
    JSON.stringify({
      version: '1.1',
      host,
      short_message: string,
      timestamp: time.epochMilliseconds / 1000,
      level: source === 'stderr' ? ERROR : INFO,
      ...extra,
    });
}

async function compress(message: Buffer, options: LogOptions): Promise<Buffer> {
  const { 'gelf-compression-type': type = 'gzip', 'gelf-compression-level': level = String(BEST_SPEED) } = options;
  return type === 'none' ? message : await compressions[type as 'gzip' | 'zlib'](message, { level: Number(level) });
}

function chunksOf(message: Buffer): Buffer[] {
  if (message.length <= DATAGRAM_BYTES) return [message];
  const room = DATAGRAM_BYTES - CHUNK_HEAD_BYTES;
  const count = Math.ceil(message.length / room);
  const id = randomBytes(8);
  return Array.from({ length: count }, (_, number) =>
    Buffer.concat([
      Buffer.from([0x1e, 0x0f]),
      id,
      Buffer.from([number, count]),
      message.subarray(number * room, (number + 1) * room),
    ]),
  );
}

function checkOptions(options: LogOptions): void {
  const { scheme } = addressOf(options);
  for (const [key, value] of Object.entries(options)) {
    if (key.startsWith('gelf-compression')) checkCompression(scheme, key, value);
    else if (key.startsWith('gelf-tcp')) checkReconnection(scheme, key, value);
  }
  checkTag(options['tag']);
}

function checkCompression(scheme: string, key: string, value: string): void {
  if (scheme !== 'udp') throw new EngineError('invalid', 'compression is only supported on UDP');
  const known = key === 'gelf-compression-type' ? /^(gzip|zlib|none)$/ : /^(-1|\+?0*[0-9])$/;
  if (known.test(value)) return;
  const [shownValue, shownKey] = [value, key].map((text) => JSON.stringify(text));
  throw new EngineError('invalid', `unknown value ${shownValue} for log opt ${shownKey} for gelf log driver`);
}

/** An unreachable receiver is retried without end, regardless of these options. */
function checkReconnection(scheme: string, key: string, value: string): void {
  if (scheme !== 'tcp') throw new EngineError('invalid', `${JSON.stringify(key)} is only valid for TCP`);
  if (!/^\+?\d{1,18}$/.test(value))
    throw new EngineError('invalid', `${JSON.stringify(key)} must be a positive integer`);
}

function addressOf({ 'gelf-address': written = '' }: LogOptions): HostAndPort & { scheme: string } {
  if (written === '') throw new EngineError('invalid', 'gelf-address is a required parameter');
  const url = transportUrl(written);
  if (url === undefined)
    throw new EngineError('invalid', `gelf-address should be in form proto://address, got ${written}`);
  if (url.scheme !== 'udp' && url.scheme !== 'tcp') {
    throw new EngineError('invalid', 'gelf: endpoint needs to be TCP or UDP');
  }
  const target = url.host.includes(':') ? hostAndPort(url.host) : undefined;
  if (target === undefined) throw new EngineError('invalid', 'gelf: please provide gelf-address as proto://host:port');
  return { scheme: url.scheme, ...target };
}
