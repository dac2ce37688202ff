/**
 * Runs in the network namespace of an engine under test, controlled by its parent: sends requests there, and is a proxy
 * before a registry that injects faults, and asks for tokens on request.
 */
import http from 'node:http';
import net from 'node:net';
import { buffer } from 'node:stream/consumers';

/** The fault for requests whose method and path match, for a number of times. */
export type Fault = {
  /** A regular expression for `METHOD /path`. */
  on: string;
  times: number;
} & (
  | { status: number; headers?: Record<string, string>; body?: string }
  /** The connection ends after so many bytes of the body. */
  | { cutAfter: number }
  /** The body ends after so many bytes, as if that was all. */
  | { endAfter: number }
  /** This byte of the body is another one. */
  | { corruptAt: number }
  | { bodySuffix: string }
  /** The body has no end. */
  | { endless: string; status?: number; headers?: Record<string, string> }
  /** Held back until the parent says `release`. */
  | { hold: true }
  /** Holds the answer back after so many bytes of the body. */
  | { holdAfter: number }
);

export type Seen = {
  method: string;
  path: string;
  authorization: string;
  range: string;
  /** Credentials that a proxy of the environment got for itself; missing without it. */
  proxyAuthorization?: string;
};

/** A repository that an index of version 1 knows. */
export type Hit = {
  name: string;
  description?: string | null;
  star_count?: number;
  is_official?: boolean;
  is_automated?: boolean;
};

export type ToWorker = { id: number } & (
  | { kind: 'request'; method: string; url: string; headers: Record<string, string>; body: string }
  | { kind: 'listen'; port: number; upstream: number; token?: { user: string; password: string } }
  | { kind: 'forward'; port: number; authorization?: string }
  | { kind: 'index'; port: number; hits: readonly Hit[] }
  | { kind: 'faults'; faults: Fault[] }
  | { kind: 'seen' }
  | { kind: 'release' }
);
export type FromWorker = { id: number; result: unknown };

const faults: Fault[] = [];
const seen: Seen[] = [];
let held: (() => void)[] = [];

process.on('message', (message: ToWorker) => {
  void perform(message).then(
    (result) => process.send!({ id: message.id, result }),
    (error: unknown) => process.send!({ id: message.id, result: { error: String(error) } }),
  );
});

async function perform(message: ToWorker): Promise<unknown> {
  switch (message.kind) {
    case 'request': {
      const { method, url, headers, body } = message;
      const answer = await send(url, { method, headers }, Buffer.from(body, 'base64'));
      const content = await buffer(answer);
      return { status: answer.statusCode, headers: answer.headers, body: content.toString('base64') };
    }
    case 'listen':
      return await listen(message);
    case 'forward':
      return await forward(message);
    case 'index':
      return await index(message);
    case 'faults':
      faults.splice(0, faults.length, ...message.faults);
      return undefined;
    case 'seen':
      return seen.splice(0);
    case 'release':
      for (const go of held) go();
      held = [];
      return undefined;
  }
}

async function send(url: string, options: http.RequestOptions, body: Buffer): Promise<http.IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  http.request(url, options, resolve).once('error', reject).end(body);
  return await promise;
}

async function listen(options: Extract<ToWorker, { kind: 'listen' }>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const server = http.createServer((request, response) => {
    answer(request, response, options).catch((error: unknown) => response.destroy(error as Error));
  });
  server.once('error', reject).listen(options.port, '127.0.0.1', resolve);
  await promise;
}

/** A proxy as the environment names one: for tunnels, and for plain requests with a whole address. */
async function forward({ port, authorization: wanted }: Extract<ToWorker, { kind: 'forward' }>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  /** Whether the client may use it. */
  const isTaken = ({ method = '', url: path = '', headers }: http.IncomingMessage): boolean => {
    const own = headers['proxy-authorization'];
    const { authorization = '' } = headers;
    seen.push({ method, path, authorization, range: '', ...(own !== undefined && { proxyAuthorization: own }) });
    return wanted === undefined || own === wanted;
  };
  const server = http.createServer((request, response) => {
    if (!isTaken(request)) {
      response.writeHead(407, { 'proxy-authenticate': 'Basic realm="proxy"' }).end();
      return;
    }
    const { method = '', url: path = '', headers } = request;
    const { 'proxy-authorization': _own, ...passed } = headers;
    const onward = http.request(path, { method, headers: passed }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.once('error', (error) => response.destroy(error));
    request.pipe(onward);
  });
  server.on('connect', (request, socket) => {
    if (!isTaken(request)) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const [host = '', target = ''] = (request.url ?? '').split(':');
    const onward = net.connect(Number(target), host, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    onward.on('error', () => socket.destroy()).pipe(socket);
    socket.on('error', () => onward.destroy()).pipe(onward);
  });
  server.once('error', reject).listen(port, '127.0.0.1', resolve);
  await promise;
}

/** An index of version 1: finds names that contain the words. `redirect` and `broken` are words with an effect. */
async function index({ port, hits }: Extract<ToWorker, { kind: 'index' }>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const server = http.createServer(({ method = '', url: path = '', headers }, response) => {
    const { authorization = '', range = '' } = headers;
    seen.push({ method, path, authorization, range });
    const { pathname, searchParams } = new URL(path, 'http://x');
    const [words, count] = [searchParams.get('q') ?? '', Number(searchParams.get('n'))];
    if (pathname === '/v1/_ping') response.writeHead(200, { 'content-type': 'application/json' }).end('true');
    else if (words === 'broken') response.writeHead(503).end();
    else if (words === 'garbage') response.end('{"results": 7}');
    else if (words === 'redirect')
      response.writeHead(302, { location: `http://127.0.0.2:${port}/v1/search?q=a` }).end();
    else {
      const results = hits.filter(({ name }) => name.includes(words)).slice(0, count);
      response.end(JSON.stringify({ num_results: results.length, query: words, results }));
    }
  });
  server.once('error', reject).listen(port, '0.0.0.0', resolve);
  await promise;
}

async function answer(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  { port, upstream, token }: Extract<ToWorker, { kind: 'listen' }>,
): Promise<void> {
  const { method = '', url: path = '', headers } = request;
  const { authorization = '', range = '' } = headers;
  seen.push({ method, path, authorization, range });
  const fault = faults.find(({ on, times }) => times > 0 && new RegExp(on).test(`${method} ${path}`));
  if (fault !== undefined) fault.times -= 1;
  if (fault !== undefined && 'endless' in fault) {
    response.writeHead(fault.status ?? 200, fault.headers);
    const piece = Buffer.alloc(1 << 20, fault.endless);
    const more = (): boolean => response.write(piece);
    response.on('drain', () => {
      while (more());
    });
    while (more());
    return;
  }
  if (fault !== undefined && 'status' in fault) {
    request.resume();
    response.writeHead(fault.status, fault.headers).end(fault.body);
    return;
  }
  if (fault !== undefined && 'hold' in fault) await new Promise<void>((resolve) => held.push(resolve));
  const body = await buffer(request);
  if (token !== undefined && path.startsWith('/token')) return grant(response, { path, authorization, body, token });
  if (token !== undefined && !authorization.startsWith('Bearer granted:')) {
    const realm = `Bearer realm="http://127.0.0.1:${port}/token",service="test"`;
    response
      .writeHead(401, { 'www-authenticate': realm })
      .end('{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}');
    return;
  }
  const { authorization: _, ...rest } = headers;
  const passed = token === undefined ? headers : rest;
  const given = await send(
    `http://127.0.0.1:${upstream}${path}`,
    { method, headers: { ...passed, host: headers.host } },
    body,
  );
  await pass(given, response, fault);
}

/** The name and the password, or `refresh-<name>` in their place. */
function grant(
  response: http.ServerResponse,
  asked: { path: string; authorization: string; body: Buffer; token: { user: string; password: string } },
): void {
  const { user, password } = asked.token;
  const { searchParams } = new URL(asked.path, 'http://x');
  const form = new URLSearchParams(asked.body.toString());
  const isKnown =
    asked.authorization === `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` ||
    form.get('refresh_token') === `refresh-${user}`;
  if (!isKnown) {
    response.writeHead(401).end('{"errors":[{"code":"UNAUTHORIZED","message":"incorrect username or password"}]}');
    return;
  }
  const scope = form.get('scope') ?? searchParams.getAll('scope').join(' ');
  const token = `granted:${scope}`;
  const refresh = searchParams.has('offline_token') ? { refresh_token: `refresh-${user}` } : {};
  response.end(JSON.stringify({ token, access_token: token, expires_in: 300, ...refresh }));
}

async function pass(
  given: http.IncomingMessage,
  response: http.ServerResponse,
  fault: Fault | undefined,
): Promise<void> {
  const headers = { ...given.headers };
  let content = await buffer(given);
  if (fault !== undefined && 'corruptAt' in fault) content[fault.corruptAt] = content[fault.corruptAt]! ^ 0xff;
  if (fault !== undefined && 'bodySuffix' in fault) content = Buffer.concat([content, Buffer.from(fault.bodySuffix)]);
  if (fault !== undefined && 'endAfter' in fault) content = content.subarray(0, fault.endAfter);
  if (given.headers['content-length'] !== undefined && given.statusCode !== 200) {
    // as it was: a HEAD has a length and no body
  } else if (content.length > 0) headers['content-length'] = String(content.length);
  response.writeHead(given.statusCode ?? 502, headers);
  if (fault !== undefined && 'holdAfter' in fault) {
    response.write(content.subarray(0, fault.holdAfter));
    await new Promise<void>((resolve) => held.push(resolve));
    response.end(content.subarray(fault.holdAfter));
    return;
  }
  if (fault === undefined || !('cutAfter' in fault)) {
    response.end(content);
    return;
  }
  response.write(content.subarray(0, fault.cutAfter), () => response.destroy());
}
