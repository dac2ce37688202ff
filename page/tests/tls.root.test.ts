import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { unshare } from '@gantry/engine/host/namespaces.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { makeCertificates } from '@gantry/testing/tls/certificates.ts';

import { goTo, PageTest } from './browser.ts';

const PORT = 9443;
const origin = `https://127.0.0.1:${PORT}`;

test('a browser with a certificate sees containers by events, and has a shell, over TLS', async () => {
  // This process takes the browser's connections to the daemon, and shows its certificate: they share a namespace.
  unshare('net');
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  using folder = mkdtempDisposableSync(join(tmpdir(), 'gantry-page-tls-'));
  const file = (name: string): string => join(folder.path, name);
  makeCertificates(folder.path);
  await using browser = await PageTest.start({
    netns: `/proc/${process.pid}/ns/net`,
    flags: [
      ...[`--page=0.0.0.0:${PORT}`, '--bridge=none', '--tlsverify', `--tlscacert=${file('ca.pem')}`],
      ...[`--tlscert=${file('server.pem')}`, `--tlskey=${file('server-key.pem')}`],
    ],
  });
  const { engine } = browser;
  const alone = { HostConfig: { NetworkMode: 'none' } };
  const id = await engine.run(['sleep', '1000'], alone, 'guarded');
  const clientCertificates = [{ origin, certPath: file('client.pem'), keyPath: file('client-key.pem') }];
  await using open = await browser.open({ clientCertificates, ignoreHTTPSErrors: true });
  const { page } = open;
  await page.getByRole('link', { name: 'guarded' }).waitFor();

  await engine.run(['sleep', '1000'], alone, 'later');
  await page.getByRole('link', { name: 'later' }).waitFor();
  await goTo(page, `containers/${id}/terminal`);
  await page.getByText('/ #').first().waitFor();
  await page.locator('.xterm-helper-textarea').first().focus();
  await page.keyboard.type('echo $((40 + 2)) > /answer\n');

  await eventually('the shell has answered', async () => {
    const { raw, status } = await engine.get(`/containers/${id}/archive?path=/answer`);
    return status === 200 && raw.includes('42\n');
  });
  assert.ok(page.url().startsWith(origin));
  assert.deepEqual(open.problems, []);
});
