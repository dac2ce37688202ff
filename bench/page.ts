/**
 * `./gantry bench page [CONTAINERS]`: the size of the page's files, the first paint of a fresh load, and the daemon's share of a
 * core while an idle page shows so many running containers.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { goTo, type OpenPage, PageTest } from '../page/tests/browser.ts';
import { bundlePage } from '../tools/bundle-page.ts';
import { median } from './measure.ts';

const CONTAINERS = 100;
const AT_ONCE = 4;
const LOADS = 9;
const IDLE_MS = 30_000;
const LOUD_MS = 10_000;
const NS_PER_MS = 1e6;
const BUDGETS = { bytes: 400_000, paintMs: 500, share: 0.01 };

export async function main(count = String(CONTAINERS)): Promise<void> {
  const root = dirname(import.meta.dirname);
  const bytes = await bundlePage(root, join(root, 'build/app/page'));
  print('all files, compressed', `${Math.round(bytes / 1000)} KB`, bytes / BUDGETS.bytes);
  await using browser = await PageTest.start();
  const ids = await startContainers(browser, Number(count));

  const paints: number[] = [];
  const rows: number[] = [];
  for (let load = 0; load < LOADS; load += 1) {
    const [paint, shown] = await freshLoad(browser);
    paints.push(paint);
    rows.push(shown);
  }
  print(`first paint, ${LOADS} fresh loads`, `${Math.round(median(paints))} ms`, median(paints) / BUDGETS.paintMs);
  console.log(`  with ${count} containers in its table: ${Math.round(median(rows))} ms`);

  const none = await idleShare(browser.engine.pid);
  console.log(`daemon, no page open: ${percent(none)} of a core`);
  await using open = await browser.open();
  for (const [name, place] of [
    ['the table of containers', 'containers'],
    ['one container with its charts', `containers/${ids[0]}`],
    ['the events', 'events'],
  ] as const) {
    await goTo(open.page, place);
    await setTimeout(2000); // until all is loaded
    const share = (await idleShare(browser.engine.pid)) - none;
    print(`daemon, idle page of ${count} containers: ${name}`, percent(share), share / BUDGETS.share);
  }
  await followLoudLog(browser, open.page);
}

/** Shows the lines a second of a log that is printed without a pause, and the longest time in which the page drew nothing. */
async function followLoudLog({ engine }: PageTest, page: OpenPage['page']): Promise<void> {
  const LogConfig = { Type: 'json-file', Config: { 'max-size': '50m', 'max-file': '2' } };
  const id = await engine.run(['yes', 'INFO a line of the loud one'], { HostConfig: { LogConfig } }, 'loud');
  await goTo(page, `containers/${id}/logs`);
  await page.getByText('of the loud one').first().waitFor();
  const lines = async (): Promise<number> => {
    const text = (await page.getByRole('status').first().textContent()) ?? '';
    return [...text.matchAll(/\d+/g)].reduce((sum, [digits]) => sum + Number(digits), 0);
  };
  const before = await lines();
  const gap = await page.evaluate<number>(`new Promise((resolve) => {
    const begun = performance.now();
    let [last, longest] = [begun, 0];
    const draw = () => {
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      if (now - begun < ${LOUD_MS}) requestAnimationFrame(draw);
      else resolve(longest);
    };
    requestAnimationFrame(draw);
  })`);
  const rate = ((await lines()) - before) / (LOUD_MS / 1000);
  console.log(
    `a log without a pause: ${Math.round(rate)} lines a second, at most ${Math.round(gap)} ms between two frames`,
  );
}

async function startContainers({ engine }: PageTest, count: number): Promise<string[]> {
  const ids: string[] = [];
  const left = Array.from({ length: count }, (_, index) => `bench-${index}`);
  const work = async (): Promise<void> => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      ids.push(await engine.run(['sleep', '100000'], {}, name));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return ids;
}

/** Milliseconds from the start of the navigation, redirects included, to the first paint and to the first row. */
async function freshLoad(browser: PageTest): Promise<[paint: number, row: number]> {
  await using open = await browser.open();
  await open.page.locator('.row-link').first().waitFor();
  return await open.page.evaluate(() => {
    const [paint] = performance.getEntriesByName('first-contentful-paint');
    return [paint!.startTime, performance.now()];
  });
}

async function idleShare(pid: number): Promise<number> {
  const [before, began] = [cpuMs(pid), performance.now()];
  await setTimeout(IDLE_MS);
  return (cpuMs(pid) - before) / (performance.now() - began);
}

/** Processor time of all threads. */
function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const ns = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return ns.reduce((sum, each) => sum + each, 0) / NS_PER_MS;
}

function print(name: string, figure: string, ofBudget: number): void {
  console.log(`${name}: ${figure}, ${ofBudget.toFixed(2)} of the budget: ${ofBudget <= 1 ? 'met' : 'NOT MET'}`);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}
