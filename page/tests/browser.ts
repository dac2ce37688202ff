import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { TestEngine } from '@gantry/testing/test-engine.ts';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

import { bundlePage } from '../../tools/bundle-page.ts';

const root = dirname(dirname(import.meta.dirname));
/** `./gantry test` bundles the page with the daemon. */
const IS_BUNDLED = process.env['GANTRY_DAEMON']?.startsWith(join(root, 'build/app')) === true;
const DEADLINE_MS = 120_000;
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Names that others point at this machine.
  '--host-resolver-rules=MAP *.example 127.0.0.1',
];

export async function launchBrowser(executablePath: string): Promise<Browser> {
  return await chromium.launch({ executablePath, args: FLAGS, timeout: DEADLINE_MS });
}

/** A daemon and a browser on its machine: the network namespace that the daemon takes for the host's. */
export class PageTest implements AsyncDisposable {
  readonly engine: TestEngine;
  readonly browser: Browser;
  readonly #folder: string;

  private constructor(engine: TestEngine, browser: Browser, folder: string) {
    this.engine = engine;
    this.browser = browser;
    this.#folder = folder;
  }

  static async start(options: Parameters<typeof TestEngine.start>[0] = {}): Promise<PageTest> {
    await using undo = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), 'gantry-browser-'));
    undo.defer(() => rmSync(folder, { recursive: true, force: true }));
    if (!IS_BUNDLED) await bundlePage(root, join(root, 'build/app/page'));
    const engine = undo.use(await TestEngine.start({ version: '1.51', ...options }));
    const program = join(folder, 'chromium');
    writeFileSync(program, `#!/bin/sh\nexec nsenter --net=${engine.netns} chromium "$@"\n`);
    chmodSync(program, 0o755);
    const browser = await launchBrowser(program);
    undo.move();
    return new PageTest(engine, browser, folder);
  }

  /** The address of a page that opens once. */
  async invitation(readOnly = false): Promise<string> {
    const { body } = await this.engine.post<{ URL: string }>('/page', { ReadOnly: readOnly });
    return body.URL;
  }

  /** A page in a browser profile of its own. `problems` collects errors of its scripts and of its policy. */
  async open(options: Parameters<Browser['newContext']>[0] & { readOnly?: boolean } = {}): Promise<OpenPage> {
    const { readOnly = false, ...ofContext } = options;
    const context = await this.browser.newContext(ofContext);
    context.setDefaultTimeout(DEADLINE_MS);
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => {
      const isPolicy = /Content Security Policy|Trusted/i.test(message.text());
      if (isPolicy) problems.push(message.text());
    });
    await page.goto(await this.invitation(readOnly));
    return { context, page, problems, [Symbol.asyncDispose]: async () => await context.close() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
    await this.engine[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export type OpenPage = AsyncDisposable & Readonly<{ context: BrowserContext; page: Page; problems: readonly string[] }>;

/** Goes to a screen of an open page. */
export async function goTo(page: Page, place: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${place}`)}`);
}
