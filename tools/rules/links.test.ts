import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const root = dirname(dirname(import.meta.dirname));
const OTHERS = ['node_modules', '.node', 'build', '.git'];

test('links of Markdown files lead to files of this repository', () => {
  const files = globSync('**/*.md', {
    cwd: root,
    exclude: (path) => OTHERS.some((name) => path.split('/').includes(name)),
  });
  const broken = files.flatMap((file) =>
    linksIn(readFileSync(join(root, file), 'utf8'))
      .filter((link) => !existsSync(join(root, dirname(file), link)))
      .map((link) => `${file}: ${link}`),
  );

  assert.ok(files.length > 20, `${files.length} files`);
  assert.deepEqual(broken, []);
});

/** Paths of relative links, outside of code. */
function linksIn(text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)]
    .map(([, path]) => path!)
    .filter((path) => !path.includes(':'));
}
