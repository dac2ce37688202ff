import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';

const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');

/** The example of each chapter, as a program of its own beside this repository's packages. */
const folder = await mkdtemp(join(tmpdir(), 'gantry-readme-'));
after(async () => await rm(folder, { recursive: true }));
await symlink(join(dirname(import.meta.dirname), 'node_modules'), join(folder, 'node_modules'));

function shown(chapter: string): string {
  const code = new RegExp(`^## ${chapter}$[^]*?^\`\`\`ts$([^]*?)^\`\`\`$`, 'm').exec(readme)?.[1];
  assert.ok(code !== undefined, `the README has no chapter ${chapter}`);
  return code.trim();
}

/** The package's entries are those of its build, which `tools/build-package.test.ts` tries. */
function fromSources(code: string): string {
  return code.replaceAll(
    /'@gantry\/limiter(\/[a-z-]+)?'/g,
    (_, entry?: string) => `'@gantry/limiter/${entry === undefined ? 'public' : `adapters${entry}`}.ts'`,
  );
}

async function write(chapter: string): Promise<string> {
  const place = join(folder, chapter.replace(':', '-'));
  await mkdir(place);
  await writeFile(join(place, 'package.json'), '{ "type": "module" }');
  await writeFile(join(place, 'main.ts'), fromSources(shown(chapter)));
  return join(place, 'main.ts');
}

for (const chapter of ['Express', 'Fastify', 'Hono', 'node:http', 'Fetch']) {
  test(`the README shows ${chapter} in ten lines`, () => {
    const lines = shown(chapter).split('\n');

    assert.ok(lines.length <= 10, `${lines.length} lines`);
  });
}

for (const chapter of ['Fastify', 'node:http']) {
  test(`the README's example for ${chapter} is a server with limits`, async () => {
    await using server = await run(await write(chapter));

    const first = await fetch(`${server.url}/hello`);
    const text = await first.text();
    for (let n = 2; n <= 60; n += 1) await (await fetch(`${server.url}/hello`)).arrayBuffer();
    const refused = await fetch(`${server.url}/hello`);
    const { message } = (await refused.json()) as { message: string };

    assert.deepEqual([first.status, text, first.headers.get('x-ratelimit-remaining')], [200, 'hello', '59']);
    assert.equal(refused.status, 403);
    assert.match(message, /^API rate limit exceeded for /);
  });
}

test("the README's example for Fetch is a handler with limits", async () => {
  const { default: shownModule } = (await import(pathToFileURL(await write('Fetch')).href)) as {
    default: { fetch: (request: Request, address: string) => Promise<Response> };
  };
  const ask = async (): Promise<Response> =>
    await shownModule.fetch(new Request('http://gantry.test/hello'), '192.0.2.1');

  const first = await ask();
  const text = await first.text();
  for (let n = 2; n <= 60; n += 1) await (await ask()).text();
  const refused = await ask();

  assert.deepEqual([text, first.headers.get('x-ratelimit-remaining')], ['hello', '59']);
  assert.equal(refused.status, 403);
});

/** Starts the program on a free port, which is the last number of what it says. */
async function run(file: string): Promise<AsyncDisposable & { url: string }> {
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  for await (const chunk of child.stdout) {
    said += String(chunk);
    if (said.includes('\n')) break;
  }
  const port = /(\d+)\D*$/.exec(said)?.[1];
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
    },
  };
}
