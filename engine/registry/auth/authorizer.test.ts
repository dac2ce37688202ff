import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import { Transport } from '../connection/transport.ts';
import { Authorizer } from './authorizer.ts';
import { ANONYMOUS, type Credentials } from './credentials.ts';

const KNOWN = { ...ANONYMOUS, username: 'ada', password: 'secret' };
const IDENTITY = { ...ANONYMOUS, identityToken: 'secret' };
const REFUSED = /the token server .* is not secure: it gets no credentials/;

const CASES: readonly [registry: 'https' | 'http', credentials: Credentials, refusal: RegExp | undefined][] = [
  ['https', KNOWN, REFUSED],
  ['https', IDENTITY, REFUSED],
  ['https', ANONYMOUS, undefined],
  ['http', KNOWN, undefined],
];

for (const [registry, credentials, refusal] of CASES) {
  const kind = credentials === ANONYMOUS ? 'none' : credentials === KNOWN ? 'a password' : 'an identity token';
  test(`a token server over http, a registry over ${registry}, credentials: ${kind}`, async () => {
    const asked: (string | undefined)[] = [];
    await using server = createServer((request, response) => {
      asked.push(request.headers.authorization);
      response.end('{"token":"given"}');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    using transport = new Transport('127.0.0.1:1', {}, true);
    const authorizer = new Authorizer(transport, credentials, systemClock, registry === 'https');
    const realm = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
    authorizer.challenged([{ scheme: 'bearer', parameters: { realm } }]);

    const header = authorizer.header(['repository:a:pull'], new AbortController().signal);

    if (refusal === undefined) assert.equal(await header, 'Bearer given');
    else await assert.rejects(header, refusal);
    assert.equal(asked.length, refusal === undefined ? 1 : 0);
  });
}
