import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { constants, gzipSync } from 'node:zlib';

import { build } from 'esbuild';

import { replaceFile } from './replace-file.ts';

/**
 * Bundles the page for browsers: `main.js` and `main.css`, parts that are loaded on use, and each file compressed beside
 * it. Returns the compressed bytes of all files.
 */
export async function bundlePage(root: string, folder: string): Promise<number> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['page/main.tsx'],
    outdir: folder,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome120', 'firefox121', 'safari17'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    minify: true,
    legalComments: 'none',
    logLevel: 'error',
    write: false,
  });
  mkdirSync(folder, { recursive: true });
  const html = { path: 'index.html', contents: readFileSync(join(root, 'page/index.html')) };
  const files = [...outputFiles, html];
  let bytes = 0;
  for (const { path, contents } of files) {
    const compressed = gzipSync(contents, { level: constants.Z_BEST_COMPRESSION });
    replaceFile(join(folder, basename(path)), contents);
    replaceFile(join(folder, `${basename(path)}.gz`), compressed);
    bytes += compressed.length;
  }
  const names = new Set(files.flatMap(({ path }) => [basename(path), `${basename(path)}.gz`]));
  for (const name of readdirSync(folder)) {
    const isOfOther = name.endsWith('.new'); // another program writes the same bundle
    if (!names.has(name) && !isOfOther) rmSync(join(folder, name), { force: true }); // of an earlier build
  }
  return bytes;
}
