// Makes each entry of the package typebox one file, after npm has installed it: Node takes 0.3 ms and 60 KB for each of the
// 537 files of which it consists (docs/decisions/016-typebox-in-one-file.md). Without esbuild the package stays as it is.
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const folder = join(dirname(import.meta.dirname), 'node_modules/typebox');
const rank = (file) => (file.startsWith('chunks/') ? 0 : 1);
/** Written last: a bundling that was killed is done again. */
const DONE = join(folder, 'build/bundled');

async function bundle() {
  if (existsSync(DONE)) return;
  const esbuild = await import('esbuild');
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const outdir = join(folder, 'bundled');
  await esbuild.build({
    entryPoints: Object.values(exports).map((entry) => join(folder, entry.import)),
    outbase: join(folder, 'build'),
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true, // what several entries share, such as their settings, stays one
    chunkNames: 'chunks/[hash]',
    format: 'esm',
    platform: 'node',
    target: 'esnext',
    logLevel: 'error',
  });
  // A program that is being started finds each file whole: the old one or the new one, and the chunks before who imports them.
  const files = globSync('**', { cwd: outdir }).filter((file) => statSync(join(outdir, file)).isFile());
  for (const file of files.toSorted((a, b) => rank(a) - rank(b))) {
    mkdirSync(join(folder, 'build', dirname(file)), { recursive: true });
    renameSync(join(outdir, file), join(folder, 'build', file));
  }
  rmSync(outdir, { recursive: true });
  writeFileSync(DONE, '');
}

try {
  await bundle();
} catch (error) {
  // An installation without esbuild, or without its program for this machine, is slower and otherwise the same.
  console.error(`typebox stays as it is: ${error instanceof Error ? error.message : 'unknown'}`);
}
