import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import { issue, newAuthority, newKey, newRequest } from './certificates.ts';
import { signExternally } from './external.ts';

const NOW = systemClock.now();
const root = newAuthority('root', NOW);
const { publicKey, csr } = newRequest();
const subject = { name: 'node1', unit: 'swarm-worker', organization: 'cluster1' };

/** A certificate as it was asked for, but for what is named. */
function made(over: Partial<Parameters<typeof issue>[1]> = {}, authority = root): string {
  return issue(authority, {
    subject,
    publicKey,
    now: NOW,
    lifeSeconds: 3600,
    dnsNames: ['node1', 'swarm-worker'],
    ...over,
  });
}

let answer = '';
const asked: unknown[] = [];
const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk: Buffer) => (body += chunk.toString()));
  request.on('end', () => {
    asked.push(JSON.parse(body));
    response.end(answer);
  });
}).listen(0, '127.0.0.1');
await once(server, 'listening');
after(() => server.close());
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sign`;

async function sign(urls = [url]): Promise<string> {
  const authorities = urls.map((one) => ({ protocol: 'cfssl' as const, url: one, options: {} }));
  return await signExternally({ clock: systemClock, root: root.certificate }, authorities, { csr, publicKey, subject });
}

const signed = (certificate: string): string => JSON.stringify({ success: true, result: { certificate }, errors: [] });

test('an authority is asked with the request, the names and the subject; the first that answers counts', async () => {
  const certificate = made();
  answer = signed(certificate);

  assert.equal(await sign(['http://127.0.0.1:1/nobody', url]), certificate);
  assert.deepEqual(asked.at(-1), {
    certificate_request: csr,
    hosts: ['node1', 'swarm-worker'],
    subject: { CN: 'node1', names: [{ OU: 'swarm-worker', O: 'cluster1' }] },
  });
});

const refused: readonly (readonly [what: string, answer: string, reason: RegExp])[] = [
  ['no JSON', 'sorry', /is not JSON: sorry/],
  ['something else', '{"ok":true}', /is not one of cfssl/],
  ['a refusal', '{"success":false,"result":null,"errors":[{"code":1,"message":"no"}]}', /it refuses: no/],
  ['no certificate', signed('nothing'), /has no certificate/],
  ['too much', 'x'.repeat(100_000), /larger than 64 KB/],
  ['another key', signed(made({ publicKey: newKey().publicKey })), /for another key/],
  ['another name', signed(made({ subject: { ...subject, name: 'node2' } })), /for another subject/],
  ['another role', signed(made({ subject: { ...subject, unit: 'swarm-manager' } })), /for another subject/],
  ['another cluster', signed(made({ subject: { ...subject, organization: 'x' } })), /for another subject/],
  ['no host for the role', signed(made({ dnsNames: ['node1'] })), /does not name the host swarm-worker/],
  ['one that is over', signed(made({ now: NOW.subtract({ hours: 2 }) })), /not valid now/],
  ['an authority', signed(newAuthority('node1', NOW).certificate), /that of an authority/],
  ['another root', signed(made({}, newAuthority('root', NOW))), /does not lead to the cluster's root/],
];
for (const [what, said, reason] of refused) {
  test(`refused: ${what}`, async () => {
    answer = said;

    await assert.rejects(sign(), { kind: 'unavailable', message: reason });
  });
}
