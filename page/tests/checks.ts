import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SIZES = [
  { width: 390, height: 800 },
  { width: 1280, height: 800 },
] as const;
const SCHEMES = ['light', 'dark'] as const;

/** Whoever uses a phone, a screen reader, the dark or the light scheme can use the screen that is shown. */
export async function assertUsable(page: Page, place: string): Promise<void> {
  await page.evaluate(AXE);
  const problems: string[] = [];
  for (const size of SIZES) {
    await page.setViewportSize(size);
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      const where = `${place}, ${size.width} px, ${colorScheme}`;
      for (const problem of await page.evaluate(findProblems)) problems.push(`${where}: ${problem}`);
    }
  }
  assert.deepEqual(problems, []);
}

/** Runs in the page. */
async function findProblems(): Promise<string[]> {
  const { axe } = globalThis as unknown as {
    axe: { run: (root: Document, options: object) => Promise<AxeResults> };
  };
  const { violations } = await axe.run(document, { resultTypes: ['violations'] });
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const problems = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  const { scrollWidth, clientWidth } = document.documentElement;
  return scrollWidth > clientWidth ? [...problems, `is ${scrollWidth - clientWidth} px too wide`] : problems;
}
