/** Envoy's rate limit service, asked by gRPC's library with messages that are written by the protocol's numbers. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';

const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

type Entries = Readonly<Record<string, string>>;
type Descriptor = Readonly<{ entries: Entries; hits?: number }>;
type Told = Readonly<{
  code: number;
  statuses: readonly Readonly<{
    code: number;
    limit: number;
    unit: number;
    name: string;
    remaining: number;
    reset: number;
  }>[];
  headers: Readonly<Record<string, string>>;
  body: string;
}>;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

const number = (field: number, value: number): Buffer => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field: number, value: Buffer | string): Buffer => {
  const content = Buffer.from(value);
  return Buffer.concat([varint((field << 3) | 2), varint(content.length), content]);
};

function question(descriptors: readonly Descriptor[], hits = 0): Buffer {
  const encoded = descriptors.map(({ entries, hits: own }) => {
    const pairs = Object.entries(entries).map(([key, value]) =>
      bytes(1, Buffer.concat([bytes(1, key), bytes(2, value)])),
    );
    return bytes(
      2,
      Buffer.concat([...pairs, ...(own === undefined ? [] : [bytes(3, own === 0 ? '' : number(1, own))])]),
    );
  });
  return Buffer.concat([bytes(1, 'gantry'), ...encoded, ...(hits === 0 ? [] : [number(3, hits)])]);
}

/** The fields of a message: numbers, or bytes. */
function read(message: Buffer): Map<number, (number | Buffer)[]> {
  const fields = new Map<number, (number | Buffer)[]>();
  let at = 0;
  const next = (): number => {
    let [value, scale] = [0, 1];
    for (;;) {
      const byte = message[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  };
  while (at < message.length) {
    const key = next();
    const size = next();
    const value = (key & 7) === 0 ? size : message.subarray(at, (at += size));
    fields.set(key >> 3, [...(fields.get(key >> 3) ?? []), value]);
  }
  return fields;
}

const first = (fields: Map<number, (number | Buffer)[]>, field: number): number => Number(fields.get(field)?.[0] ?? 0);
const inner = (value: number | Buffer | undefined): Map<number, (number | Buffer)[]> =>
  read(Buffer.from(value as Buffer));
const textOf = (value: number | Buffer | undefined): string => String(value ?? '');

function told(message: Buffer): Told {
  const fields = read(message);
  const statuses = (fields.get(2) ?? []).map((status) => {
    const parts = inner(status);
    const limit = inner(parts.get(2)?.[0]);
    return {
      code: first(parts, 1),
      limit: first(limit, 1),
      unit: first(limit, 2),
      name: textOf(limit.get(3)?.[0]),
      remaining: first(parts, 3),
      reset: first(inner(parts.get(4)?.[0]), 1),
    };
  });
  const headers = (fields.get(3) ?? []).map((header) => {
    const parts = inner(header);
    return [textOf(parts.get(1)?.[0]), textOf(parts.get(2)?.[0])] as const;
  });
  return { code: first(fields, 1), statuses, headers: Object.fromEntries(headers), body: textOf(fields.get(5)?.[0]) };
}

suite("Envoy's rate limit service", () => {
  let gateway: TestGateway;
  let client: Client;
  let port: number;

  before(async () => {
    const token = { user: 'ada', sha256: sha256('token-of-ada') } as const;
    gateway = await TestGateway.start({
      upstream: 'http://127.0.0.1:9',
      trustProxy: ['127.0.0.1'],
      decisions: { envoy: '127.0.0.1:0' },
      identities: { users: { ada: {} }, tokens: [token] },
      limits: { anonymous: 3 },
      secondary: { concurrent: { limit: 1 }, restPoints: { limit: 20 } },
    });
    port = Number(gateway.log.find(({ msg }) => msg.startsWith("Envoy's rate limit"))?.['port']);
    client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  });
  after(async () => {
    client.close();
    await gateway[Symbol.asyncDispose]();
  });

  const call = async (message: Buffer, method = METHOD, by = client): Promise<Buffer> => {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const same = (value: Buffer): Buffer => value;
    by.makeUnaryRequest(method, same, same, message, new Metadata(), (error, answer) => {
      if (error === null) resolve(answer!);
      else reject(error);
    });
    return await promise;
  };
  const ask = async (descriptors: readonly Descriptor[], hits = 0): Promise<Told> =>
    told(await call(question(descriptors, hits)));
  const request = (address: string, more: Entries = {}): Descriptor => ({
    entries: { remote_address: address, method: 'GET', path: '/user', ...more },
  });

  test('a request is decided by its address, method and path', async () => {
    const answers = [];
    for (let n = 0; n < 4; n += 1) answers.push(await ask([request('192.0.2.1')]));

    assert.deepEqual(
      answers.map(({ code }) => code),
      [1, 1, 1, 2],
    );
    const [one] = answers[0]!.statuses;
    assert.deepEqual({ ...one, reset: 0 }, { code: 1, limit: 3, unit: 3, name: 'core', remaining: 2, reset: 0 });
    assert.ok(one!.reset > 0 && one!.reset <= 3601);
    assert.equal(answers[0]!.headers['x-ratelimit-remaining'], '2');
    assert.equal(answers[0]!.body, '');
    assert.deepEqual([answers[3]!.statuses[0]!.code, answers[3]!.statuses[0]!.remaining], [2, 0]);
    assert.match(answers[3]!.body, /^{"message":"API rate limit exceeded for 192\.0\.2\.1\."/);
    assert.equal(answers[3]!.headers['x-ratelimit-used'], '3');
  });

  test('credentials, callers and categories are mapped', async () => {
    const byToken = await ask([request('192.0.2.2', { authorization: 'Bearer token-of-ada' })]);
    const byName = await ask([{ entries: { caller: 'user:ada', category: 'search' } }]);
    const search = await ask([request('192.0.2.2', { path: '/search/users?q=a' })]);
    const wrong = await ask([request('192.0.2.2', { authorization: 'Bearer unknown' })]);

    const shown = [byToken, byName, search, wrong].map(({ statuses: [one] }) => [
      one!.name,
      one!.limit,
      one!.remaining,
    ]);
    assert.deepEqual(shown, [
      ['core', 5000, 4999],
      ['search', 5000, 4999],
      ['search', 3, 2],
      ['core', 3, 2],
    ]);
  });

  test('hits count as many requests, all or none of them', async () => {
    const two = await ask([request('192.0.2.3')], 2);
    const tooMany = await ask([{ ...request('192.0.2.3'), hits: 2 }]);
    const none = await ask([{ ...request('192.0.2.3'), hits: 0 }]);
    const last = await ask([request('192.0.2.3')]);
    const empty = await ask([{ ...request('192.0.2.3'), hits: 0 }]);

    const shown = [two, tooMany, none, last, empty].map(({ code, statuses: [one] }) => [code, one!.remaining]);
    assert.deepEqual(shown, [
      [1, 1],
      [2, 1],
      [1, 1],
      [1, 0],
      [2, 0],
    ]);
  });

  test('points of secondary limits count for each hit', async () => {
    const post = { ...request('192.0.2.4', { caller: 'user:points', method: 'POST' }) };

    const answers = [await ask([post], 3), await ask([post], 2), await ask([post], 1)];

    assert.deepEqual(
      answers.map(({ code }) => code),
      [1, 2, 1],
    );
    assert.match(answers[1]!.body, /secondary rate limit/);
    assert.ok(Number(answers[1]!.headers['retry-after']) > 0);
  });

  test('one descriptor without room refuses all, and then none has spent anything', async () => {
    await ask([request('192.0.2.5')], 3);

    const { code, statuses } = await ask([request('192.0.2.6'), request('192.0.2.5')]);
    const again = await ask([request('192.0.2.6')]);

    assert.deepEqual([code, statuses.map((status) => status.code)], [2, [1, 2]]);
    assert.equal(again.statuses[0]!.remaining, 2);
  });

  test('a path that cannot be read is refused', async () => {
    const { code, body } = await ask([request('192.0.2.7', { path: '/search%2Fcode' })]);

    assert.deepEqual([code, body], [2, '{"message":"The path is ambiguous."}']);
  });

  const invalid: readonly (readonly [descriptors: readonly Descriptor[], message: RegExp])[] = [
    [[], /1 to 100 descriptors/],
    [Array.from({ length: 101 }, () => request('192.0.2.8')), /1 to 100 descriptors/],
    [[{ entries: {} }], /remote_address or caller is missing/],
    [[{ entries: { remote_address: '192.0.2.8' } }], /either method and path or a category/],
    [[request('nobody')], /no address: nobody/],
    [[request('192.0.2.8', { caller: 'somebody' })], /no caller somebody/],
    [[request('192.0.2.8', { category: 'core' })], /either method and path or a category/],
    [[{ entries: { caller: 'user:ada', category: '__proto__' } }], /no category __proto__/],
    [[request('192.0.2.8', { generic_key: 'x' })], /generic_key is none of remote_address/],
    [[{ ...request('192.0.2.8'), hits: 1e15 }], /hits may be/],
  ];
  for (const [descriptors, message] of invalid) {
    test(`${JSON.stringify(descriptors).slice(0, 100)} is an invalid argument: ${message}`, async () => {
      await assert.rejects(ask(descriptors), (error: ServiceError) => {
        assert.match(error.details, message);
        return error.code === status.INVALID_ARGUMENT;
      });
    });
  }

  test('broken messages are invalid arguments', async () => {
    const one = question([request('192.0.2.9')]);
    const broken = [
      one.subarray(0, -1),
      Buffer.from([0x12, 0xff]),
      Buffer.from([0x07]),
      Buffer.from([0x10, 1]),
      Buffer.alloc(20, 0xff),
    ];
    for (const message of broken) {
      await assert.rejects(call(message), { code: status.INVALID_ARGUMENT });
    }
  });

  test('other methods, too large messages and strangers are refused', async () => {
    await assert.rejects(call(question([]), '/envoy.service.ratelimit.v3.RateLimitService/Other'), {
      code: status.UNIMPLEMENTED,
    });
    await assert.rejects(call(Buffer.alloc(100_000)), { code: status.RESOURCE_EXHAUSTED });
    const stranger = connectHttp2(`http://127.0.0.1:${port}`, {
      createConnection: () => connect({ port, host: '127.0.0.1', localAddress: '127.0.0.9' }),
    });
    const stream = stranger.request({ ':method': 'POST', ':path': METHOD, 'content-type': 'application/grpc' });
    stream.end();
    const [headers] = (await once(stream, 'response')) as [Record<string, string>];
    stranger.destroy();

    assert.equal(headers['grpc-status'], '7');
  });

  test('hostile frames end their own connection alone', async () => {
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
    const settings = '\0\0\0\x04\0\0\0\0\0';
    const frames = [
      'GET / HTTP/1.1\r\nhost: x\r\n\r\n',
      `${preface}\xff\xff\xff\x00\x00\x00\x00\x00\x01`, // a frame of 16 MB
      `${preface}${settings}\0\0\x08\x06\0\0\0\0\x01${'\0'.repeat(8)}`, // a ping on a stream
      `${preface}${settings}\0\0\x04\x03\0\0\0\0\x09\0\0\0\x08`, // a reset of a stream that is idle
      `${preface}${settings}${'\0\0\x01\x09\x04\0\0\0\x01\x82'.repeat(50)}`, // continuations of nothing
      `${preface}${settings}${'\0\0\x06\x04\0\0\0\0\0\0\x04\xff\xff\xff\xff'.repeat(20)}`, // windows that are too large
    ];
    for (const text of frames) {
      const socket = connect(port, '127.0.0.1').on('error', () => socket.destroy());
      socket.write(text, 'latin1');
      socket.resume();
      await once(socket, 'close');
    }

    const { code } = await ask([request('192.0.2.10')]);

    assert.equal(code, 1);
  });

  test('idle connections of strangers keep no place of a proxy', async () => {
    const from = { port, host: '127.0.0.1', localAddress: '127.0.0.9' };
    const strangers = Array.from({ length: 1100 }, () => connect(from).on('error', () => undefined));
    await Promise.all(
      strangers.map(async (socket) => await Promise.race([once(socket, 'connect'), once(socket, 'close')])),
    );

    const { code } = await ask([request('192.0.2.11')]);
    for (const socket of strangers) socket.destroy();

    assert.equal(code, 1);
  });

  test('nothing stays under way', async () => {
    for (const caller of ['ip:192.0.2.1', 'user:ada', 'user:points']) {
      await eventually('nothing is under way', async () => {
        const { output } = await gateway.cli('explain', caller);
        return output.startsWith(`${caller}: 0 under way`);
      });
    }
  });
});
