import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { signExternally } from '@gantry/engine/cluster/ca/external.ts';
import { Etcd } from '@gantry/engine/cluster/etcd/gateway.ts';
import { systemClock, type Clock } from '@gantry/engine/lib/clock.ts';
import { messageOf } from '@gantry/engine/lib/failure-message.ts';
import { HttpReceiver } from '@gantry/engine/logs/receivers/http-receiver.ts';
import { askLimited } from '@gantry/gateway/admin/client.ts';
import { Introspection } from '@gantry/gateway/identity/introspection.ts';
import { credentialIn } from '@gantry/limiter/credentials.ts';
import { defaultPrimaryLimits } from '@gantry/limiter/primary.ts';
import { internalWord } from '@gantry/testing/internal-words.ts';

/** Limit in milliseconds of a reader that is tested for its time. */
const SOON_MS = 300;
const NEVER_MS = 3_600_000;
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
const MEGABYTE = Buffer.alloc(1 << 20, ' ');

type Reader = Readonly<{
  /** Asks a server at this Unix socket or URL, and gives an answer up after this time. */
  ask: (at: Readonly<{ path: string; url: string }>, milliseconds: number) => Promise<unknown>;
  /** Told about an endless answer; undefined: it needs none of the body. */
  tooLarge: RegExp | undefined;
  tooLate: RegExp;
  /** Told about garbage; undefined: it needs none of the body. */
  garbage: RegExp | undefined;
}>;

const READERS: Readonly<Record<string, Reader>> = {
  'etcd: a call': {
    ask: async ({ path }, milliseconds) => {
      using etcd = new Etcd(path, systemClock);
      return await etcd.call('/v3/kv/range', {}, milliseconds);
    },
    tooLarge: /^etcd answers \/v3\/kv\/range with more than 16777216 bytes$/,
    tooLate: /^etcd has not answered \/v3\/kv\/range for 0\.3 s$/,
    garbage: /^etcd answers \/v3\/kv\/range with something else than JSON$/,
  },
  'an external certificate authority': {
    ask: async ({ url }, milliseconds) => {
      const authorities = [{ protocol: 'cfssl' as const, url, options: {} }];
      const subject = { name: 'node1', unit: 'swarm-worker', organization: 'cluster1' };
      const wish = { csr: 'csr', publicKey: 'key', subject };
      return await signExternally({ clock: hurried(milliseconds), root: 'root' }, authorities, wish);
    },
    tooLarge: /^no external certificate authority signs: \S+: the answer is larger than 64 KB$/,
    tooLate: /^no external certificate authority signs: \S+: no answer within 5 s$/,
    garbage: /^no external certificate authority signs: \S+: the answer is not JSON: \{"a":$/,
  },
  'a receiver of logs': {
    ask: async ({ url }, milliseconds) => {
      using receiver = new HttpReceiver({}, milliseconds);
      return await receiver.ask({ method: 'GET', url });
    },
    tooLarge: undefined,
    tooLate: /^127\.0\.0\.1:\d+ has not answered within 0\.3 s$/,
    garbage: undefined,
  },
  'the source of identities of the gateway': {
    ask: async ({ url }, timeoutMs) => {
      const settings = { url, timeoutMs, cacheSeconds: 60 };
      const source = new Introspection(settings, defaultPrimaryLimits);
      const header = { name: 'authorization', value: 'Bearer x' };
      const [reading] = source.readings({ credential: credentialIn(header.value), isCookie: false, header });
      return await source.ask(reading!, '127.0.0.1', 'normal');
    },
    tooLarge: /^the answer of the identity source is too large$/,
    tooLate: /^the identity source does not answer$/,
    garbage: /^the answer of the identity source is not JSON$/,
  },
  'the admin socket of the gateway': {
    ask: async ({ path }, milliseconds) => await askLimited(path, milliseconds),
    tooLarge: /^no gateway answers on \S+: its answer is larger than 64 MB$/,
    tooLate: /^no gateway answers on \S+: no answer within 0\.3 s$/,
    garbage: /^no gateway answers on \S+: its answer is not JSON$/,
  },
};

/** Answers that end at no time by themselves. */
const SLOW: Readonly<Record<string, (socket: Socket) => void>> = {
  'no byte': () => undefined,
  'half a head': (socket) => void socket.write('HTTP/1.1 200 O'),
  'a head': (socket) => void socket.write(`${HEAD}\r\n`),
  'a byte at times': (socket) => {
    socket.write(`${HEAD}\r\n`);
    const timer = setInterval(() => socket.write(' '), 20);
    socket.once('close', () => clearInterval(timer));
  },
  'interim answers': (socket) => {
    const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 20);
    socket.once('close', () => clearInterval(timer));
  },
};

suite('bodies of others', () => {
  for (const [name, { ask, tooLarge, tooLate, garbage }] of Object.entries(READERS)) {
    test(`${name}: an endless answer ends at the limit, and the connection with it`, async () => {
      await using server = await Answering.open((socket) => forEver(socket, `${HEAD}\r\n`));

      if (tooLarge === undefined) await ask(server, NEVER_MS);
      else await refused(ask(server, NEVER_MS), tooLarge);

      await server.isLeft();
    });

    for (const [kind, answer] of Object.entries(SLOW)) {
      test(`${name}: an answer of ${kind} is given up in time, and the connection with it`, async () => {
        await using server = await Answering.open(answer);

        await refused(ask(server, SOON_MS), tooLate);

        await server.isLeft();
      });
    }

    if (garbage === undefined) continue;
    test(`${name}: garbage is told as such`, async () => {
      await using server = await Answering.open((socket) => socket.end(`${HEAD}Connection: close\r\n\r\n{"a":`));

      await refused(ask(server, NEVER_MS), garbage);
    });
  }

  test('etcd: a watch without a head is given up in time', async () => {
    await using server = await Answering.open(() => undefined);
    using etcd = new Etcd(server.path, hurried(SOON_MS));

    await refused(etcd.watch(1, new AbortController().signal).next(), /^etcd has not answered \/v3\/watch for 60 s$/);

    await server.isLeft();
  });
});

async function refused(asked: Promise<unknown>, reason: RegExp): Promise<void> {
  await assert.rejects(asked, (error) => {
    const message = messageOf(error);
    assert.match(message, reason);
    assert.equal(internalWord(message), undefined, message);
    return true;
  });
}

/** All times of this clock end after so many milliseconds. */
function hurried(milliseconds: number): Clock {
  return { ...systemClock, after: (_, callback) => systemClock.after(milliseconds, callback) };
}

/** Writes for ever, as fast as it is taken. */
function forEver(socket: Socket, first = ''): void {
  socket.write(first);
  while (!socket.destroyed && socket.write(MEGABYTE)) continue;
  if (!socket.destroyed) socket.once('drain', () => forEver(socket));
}

/** A server at a Unix socket and at a URL. */
class Answering implements AsyncDisposable {
  readonly path: string;
  readonly url: string;
  readonly #parts: AsyncDisposableStack;
  readonly #open: Set<Socket>;

  private constructor(path: string, url: string, open: Set<Socket>, parts: AsyncDisposableStack) {
    this.path = path;
    this.url = url;
    this.#open = open;
    this.#parts = parts;
  }

  /** Calls `answer` when a request has come. */
  static async open(answer: (socket: Socket) => void): Promise<Answering> {
    await using undo = new AsyncDisposableStack();
    const folder = undo.use(mkdtempDisposableSync(join(tmpdir(), 'gantry-bodies-')));
    const path = join(folder.path, 'socket:0');
    const open = new Set<Socket>();
    const listen = async (at: { path: string } | { port: number; host: string }): Promise<Server> => {
      const server = createServer((socket) => {
        open.add(socket);
        socket.on('error', () => undefined).once('close', () => open.delete(socket));
        socket.once('data', () => answer(socket));
      }).listen(at);
      undo.defer(() => void server.close());
      await once(server, 'listening');
      return server;
    };
    await listen({ path });
    const address = (await listen({ port: 0, host: '127.0.0.1' })).address();
    undo.defer(() => {
      for (const socket of open) socket.destroy();
    });
    const port = typeof address === 'object' ? address?.port : 0;
    return new Answering(path, `http://127.0.0.1:${port}/asked`, open, undo.move());
  }

  /** Resolves when no client is connected any more. */
  async isLeft(): Promise<void> {
    const ends = [...this.#open].map(async (socket) => {
      await new Promise((resolve) => socket.once('close', resolve)); // `once` of events throws for the error before it
    });
    await Promise.all(ends);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}
