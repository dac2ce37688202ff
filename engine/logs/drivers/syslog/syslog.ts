import { statSync } from 'node:fs';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';

import { EngineError } from '../../../lib/errors.ts';
import { messageOf } from '../../../lib/failure-message.ts';
import type { Line } from '../../delivery/line.ts';
import type { Sender, SenderContext } from '../../delivery/sender.ts';
import type { LogOptions } from '../../driver.ts';
import { hostAndPort, transportUrl, withoutBrackets, type HostAndPort } from '../../receivers/address.ts';
import { Connection } from '../../receivers/connection.ts';
import { Datagrams } from '../../receivers/datagrams.ts';
import { LocalDatagrams } from '../../receivers/local-datagrams.ts';
import { tlsFiles } from '../../receivers/tls.ts';
import { checkTag, tagOf } from '../../tag.ts';
import { deliveringDriver } from '../delivering.ts';
import { SYSLOG_FORMATS, type SyslogHead, type SyslogSource } from './syslog-format.ts';

const NAMES = ['kern', 'user', 'mail', 'daemon', 'auth', 'syslog', 'lpr', 'news', 'uucp', 'cron', 'authpriv', 'ftp'];
const LOCAL = ['local0', 'local1', 'local2', 'local3', 'local4', 'local5', 'local6', 'local7'];
const FACILITIES = new Map([
  ...NAMES.map((name, at) => [name, at] as const),
  ...LOCAL.map((name, at) => [name, 16 + at] as const),
]);
const DAEMON = 3;
const PORT = 514;
const LOCAL_PATHS = ['/dev/log', '/var/run/syslog', '/var/run/log'];
const LIMITS = { lines: 500, bytes: 128 * 1024 };

type Address =
  | (HostAndPort & Readonly<{ scheme: 'tcp' | 'udp' | 'tcp+tls' }>)
  | Readonly<{ scheme: 'unix' | 'unixgram'; path: string }>
  | undefined;

/** Messages to a daemon of syslog, by every transport and format that docker has. */
export const syslog = deliveringDriver({
  name: 'syslog',
  options: [
    'env',
    'env-regex',
    'labels',
    'labels-regex',
    'syslog-address',
    'syslog-facility',
    'syslog-tls-ca-cert',
    'syslog-tls-cert',
    'syslog-tls-key',
    'syslog-tls-skip-verify',
    'tag',
    'syslog-format',
  ],
  check: (options) => {
    const address = addressOf(options);
    facilityOf(options);
    headOf(options);
    checkTag(options['tag']);
    if (address?.scheme === 'tcp+tls') tlsOf(options);
  },
  deliver: (context) => {
    const messages = messagesOf(context);
    const address = addressOf(context.options);
    const tooLong = (): void => context.refused(1, 'it is longer than a datagram can be');
    if (address === undefined)
      return datagramSender(new LocalDatagrams({ ...context, paths: LOCAL_PATHS, tooLong }), messages, false);
    switch (address.scheme) {
      case 'unixgram':
        return datagramSender(new LocalDatagrams({ ...context, paths: [address.path], tooLong }), messages, false);
      case 'udp':
        return datagramSender(new Datagrams({ ...address, ...context, tooLong }), messages, true);
      case 'tcp':
      case 'unix':
        return streamSender(context, messages, { ready: 'connect', open: () => connect(address) });
      case 'tcp+tls': {
        const open = () => connectTls({ ...address, ...tlsOf(context.options) });
        return streamSender(context, messages, { ready: 'secureConnect', open });
      }
    }
  },
});

type Messages = (lines: readonly Line[]) => Buffer[];

function messagesOf({ container, options }: SenderContext): Messages {
  const source: SyslogSource = {
    facility: facilityOf(options),
    hostname: hostname(),
    tag: tagOf(container, '{{.ID}}'),
    pid: process.pid,
    timeZone: Temporal.Now.timeZoneId(),
  };
  const head = headOf(options);
  const isCounted = isFramedByLength(options);
  // Empty lines are left out, as docker does.
  return (lines) =>
    lines
      .filter(({ text }) => text.length > 0)
      .map((line) => {
        const start = Buffer.from(head(source, line));
        const length = start.length + line.text.length + 1;
        const count = isCounted ? Buffer.from(`${length} `) : Buffer.alloc(0);
        return Buffer.concat([count, start, line.text, Buffer.from('\n')]);
      });
}

function datagramSender(
  datagrams: Disposable & { send: (messages: Buffer[]) => Promise<void>; end: () => Promise<void> },
  messages: Messages,
  recalls: boolean,
): Sender {
  return {
    limits: LIMITS,
    recalls,
    send: async (lines) => await datagrams.send(messages(lines)),
    end: async () => await datagrams.end(),
    [Symbol.dispose]: () => datagrams[Symbol.dispose](),
  };
}

function streamSender(
  context: SenderContext,
  messages: Messages,
  how: Pick<ConstructorParameters<typeof Connection>[0], 'ready' | 'open'>,
): Sender {
  const connection = new Connection({ ...how, ...context });
  return {
    limits: LIMITS,
    recalls: true,
    send: async (lines) => await connection.write(Buffer.concat(messages(lines))),
    end: async () => await connection.end(),
    [Symbol.dispose]: () => connection[Symbol.dispose](),
  };
}

function headOf({ 'syslog-format': format = '' }: LogOptions): SyslogHead {
  const head = SYSLOG_FORMATS.get(format);
  if (head === undefined) throw new EngineError('invalid', 'Invalid syslog format');
  return head;
}

/** Over TLS a message of RFC 5424 says its length (RFC 5425); otherwise its end is the newline. */
function isFramedByLength(options: LogOptions): boolean {
  return addressOf(options)?.scheme === 'tcp+tls' && (options['syslog-format'] ?? '').startsWith('rfc5424');
}

function facilityOf({ 'syslog-facility': written = '' }: LogOptions): number {
  if (written === '') return DAEMON;
  const number = FACILITIES.get(written) ?? (/^\+?\d{1,3}$/.test(written) ? Number(written) : 24);
  if (number > 23) throw new EngineError('invalid', 'invalid syslog facility');
  return number;
}

/** Undefined: the daemon of this machine. */
function addressOf({ 'syslog-address': written = '' }: LogOptions): Address {
  if (written === '') return undefined;
  const url = transportUrl(written);
  if (url === undefined) {
    throw new EngineError('invalid', `syslog-address should be in form proto://address, got ${written}`);
  }
  if (url.scheme === 'unix' || url.scheme === 'unixgram') {
    mustExist('stat', url.path);
    return { scheme: url.scheme, path: url.path };
  }
  const target = hostAndPort(url.host) ?? { host: withoutBrackets(url.host), port: PORT };
  return { scheme: url.scheme as 'tcp' | 'udp' | 'tcp+tls', ...target };
}

/** Read for each connection, so that renewed certificates are used. */
function tlsOf(options: LogOptions): ConnectionOptions {
  const { 'syslog-tls-ca-cert': ca = '', 'syslog-tls-cert': cert, 'syslog-tls-key': key } = options;
  return { ...tlsFiles({ ca, cert, key }), rejectUnauthorized: options['syslog-tls-skip-verify'] === undefined };
}

function mustExist(call: string, path: string): void {
  try {
    statSync(path);
  } catch (error) {
    throw new EngineError('invalid', `${call} ${path}: ${messageOf(error)}`, { cause: error });
  }
}
