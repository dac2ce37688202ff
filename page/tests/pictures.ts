/** Makes the pictures of the docs: `node page/tests/pictures.ts`, as root, in a network namespace with a loopback. */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { goTo, PageTest } from './browser.ts';

const folder = join(dirname(dirname(import.meta.dirname)), 'docs/pictures');
/** Charts need some readings. */
const READINGS_MS = 20_000;

const requests =
  'while :; do printf "GET /cart \\033[32m200\\033[0m in 12 ms\\nGET /pay \\033[31m500\\033[0m in 9 ms\\n"; dd if=/dev/urandom of=/dev/null bs=1M count=1 2>/dev/null; sleep 0.4; done';

mkdirSync(folder, { recursive: true });
await using test = await PageTest.start();
const { engine } = test;
const member = (service: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  Labels: { 'com.docker.compose.project': 'shop', 'com.docker.compose.service': service },
  ...more,
});
const web = await engine.run(
  ['sh', '-c', requests],
  member('web', { HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '8080' }] }, Memory: 64 << 20 } }),
  'shop-web-1',
);
await engine.run(['sleep', '1000'], member('db'), 'shop-db-1');
await engine.run(['sh', '-c', 'while :; do sleep 0.01; done'], member('queue'), 'shop-queue-1');
const worker = await engine.run(
  ['sh', '-c', 'echo "connecting to db:5432"; echo "FATAL: password authentication failed" >&2; exit 3'],
  member('worker', { Env: ['LOG_LEVEL=info'] }),
  'shop-worker-1',
);
await engine.wait(worker);
await engine.run(['sleep', '1000'], {}, 'cache');

await using open = await test.open({ viewport: { width: 1200, height: 640 }, colorScheme: 'light' });
const { page } = open;
const picture = async (name: string): Promise<void> => {
  await page.screenshot({ path: join(folder, `${name}.png`) });
};
await page
  .getByRole('row', { name: /shop-web-1/ })
  .getByText('%')
  .waitFor();
await picture('page-containers');
await goTo(page, `containers/${worker}`);
await page.getByText('FATAL').first().waitFor();
await picture('page-crash');
await goTo(page, `containers/${web}`);
await page.waitForTimeout(READINGS_MS);
await picture('page-container');
await goTo(page, `containers/${web}/logs`);
await page.locator('.log-line').first().waitFor();
await picture('page-logs');
