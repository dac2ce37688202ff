// Makes each entry of the package typebox one file, after npm has installed it: Node takes 0.3 ms and 60 KB for each of the
// 537 files of which it consists (docs/decisions/016-typebox-in-one-file.md). Without esbuild the package stays as it is.
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

const folder = join(dirname(import.meta.dirname), 'node_modules/typebox');

async function bundle() {
  if (existsSync(join(folder, 'build/chunks'))) return; // done before
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
  cpSync(outdir, join(folder, 'build'), { recursive: true });
  rmSync(outdir, { recursive: true });
}

try {
  await bundle();
} catch (error) {
  // An installation without esbuild, or without its program for this machine, is slower and otherwise the same.
  console.error(`typebox stays as it is: ${error instanceof Error ? error.message : 'unknown'}`);
}
