import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { dirname } from 'node:path';
import { test } from 'node:test';

const SCRIPT = `
  import { registerHooks } from 'node:module';
  let files = 0;
  registerHooks({ load: (url, context, next) => { files += 1; return next(url, context); } });
  const { Type } = await import('typebox');
  const { default: Schema } = await import('typebox/schema');
  const check = Schema.Compile(Type.Object({ name: Type.String(), size: Type.Optional(Type.Integer()) }));
  console.log(JSON.stringify({ files, good: check.Check({ name: 'a' }), bad: check.Check({ name: 'a', size: 'b' }) }));
`;

test('typebox is loaded as a few files', () => {
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', SCRIPT], {
    cwd: dirname(import.meta.dirname),
    encoding: 'utf8',
  });

  const { files, good, bad } = JSON.parse(output) as { files: number; good: boolean; bad: boolean };
  assert.ok(files < 20, `${files} files`);
  assert.deepEqual([good, bad], [true, false]);
});
