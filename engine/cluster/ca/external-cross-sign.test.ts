import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import { crossSign, issue, newAuthority, newKey } from './certificates.ts';
import { crossSignExternally } from './external-cross-sign.ts';

const now = Temporal.Now.instant();
const [present, next, other] = ['present', 'next', 'other'].map((name) => newAuthority(name, now)) as [
  ReturnType<typeof newAuthority>,
  ReturnType<typeof newAuthority>,
  ReturnType<typeof newAuthority>,
];

let certificate = '';
let asked: Record<string, unknown> = {};
const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk: Buffer) => (body += chunk.toString()));
  request.on('end', () => {
    asked = JSON.parse(body) as typeof asked;
    response.end(JSON.stringify({ success: true, result: { certificate }, errors: [] }));
  });
}).listen(0, '127.0.0.1');
await once(server, 'listening');
after(() => server.close());
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sign`;

async function ask(answer: string): Promise<string> {
  certificate = answer;
  const asking = { clock: systemClock, root: present.certificate };
  return await crossSignExternally(asking, [{ protocol: 'cfssl', url, options: {} }], next);
}

test('the authority is asked for a certificate of the next root, by its profile for authorities', async () => {
  const crossed = crossSign(present, next.certificate, now);

  assert.equal(await ask(crossed), crossed);

  assert.equal(asked['profile'], 'CA');
  assert.match(String(asked['certificate_request']), /^-----BEGIN CERTIFICATE REQUEST-----/);
});

const { publicKey } = newKey();
const REFUSED: readonly (readonly [name: string, certificate: string, reason: RegExp])[] = [
  ['of another root', crossSign(other, next.certificate, now), /does not lead to the cluster's root/],
  ['for another key', crossSign(present, other.certificate, now), /not for the name and key/],
  [
    'of a node',
    issue(present, { subject: { name: 'next' }, publicKey, now, lifeSeconds: 60 }),
    /not that of an authority/,
  ],
  ['that is none', '', /no certificate/],
];
for (const [name, answer, reason] of REFUSED) {
  test(`a certificate ${name} is refused`, async () => {
    await assert.rejects(ask(answer), reason);
  });
}

test('both certificates of a root name its key alike, as other software does', () => {
  const crossed = new X509Certificate(crossSign(present, next.certificate, now));
  const leaf = new X509Certificate(issue(next, { subject: { name: 'n' }, publicKey, now, lifeSeconds: 60 }));

  assert.ok(leaf.checkIssued(crossed) && leaf.verify(crossed.publicKey));
});
