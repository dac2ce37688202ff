/**
 * Bundles the daemon, the command line, the gateway and the page into `build/app`, with source maps. `./gantry`
 * calls it when a source is newer than `build/app/stamp`. A program that is being started finds each file whole.
 */
import { mkdirSync, readFileSync, utimesSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { build, type Plugin } from 'esbuild';

import { bundlePage } from './bundle-page.ts';
import { replaceFile } from './replace-file.ts';

const root = dirname(import.meta.dirname);
const folder = join(root, 'build/app');

const ENTRIES = {
  daemon: 'engine/main.ts',
  client: 'cli/main.ts',
  gateway: 'gateway/main.ts',
  'archive-worker': 'engine/layers/threads/archive-worker.ts',
  'copies-worker': 'engine/copies/copies-worker.ts',
};

/** In a bundle `import.meta` keeps the meaning that it has in the source; worker threads are bundles themselves. */
const sourcePaths: Plugin = {
  name: 'source-paths',
  setup: (bundle) =>
    bundle.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8');
      if (!source.includes('import.meta.') || path.includes('node_modules')) return undefined;
      const here = `/../../${relative(root, path)}`; // from the bundle
      const contents = source
        .replaceAll(/new URL\('([\w-]+-worker)\.ts', import\.meta\.url\)/g, "(__dirname + '/$1.cjs')")
        .replaceAll('import.meta.url', `require('node:url').pathToFileURL(__dirname + '${here}').href`)
        .replaceAll('import.meta.dirname', `(__dirname + '${dirname(here)}')`);
      return { contents, loader: 'ts' as const };
    }),
};

const started = Date.now();
const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: ENTRIES,
  outdir: folder,
  bundle: true,
  format: 'cjs', // takes of Node's modules what is used; as ES modules they are loaded with all they export
  platform: 'node',
  target: 'esnext',
  sourcemap: true,
  sourcesContent: false,
  minifyWhitespace: true, // V8 keeps the text in memory
  legalComments: 'none',
  outExtension: { '.js': '.cjs' },
  external: ['koffi'], // has a native part
  plugins: [sourcePaths],
  logLevel: 'error',
  write: false,
});
mkdirSync(folder, { recursive: true });
for (const { path, contents, text } of outputFiles) {
  // V8 stores such a text in two bytes a character: 4 MB more for the daemon. esbuild escapes it everywhere but in patterns.
  const wide = /.{0,20}[^\0-\x7f].{0,20}/.exec(text);
  if (wide !== null && path.endsWith('.cjs')) throw new Error(`${path}: write this with \\u escapes: ${wide[0]}`);
  replaceFile(path, contents);
}
await bundlePage(root, join(folder, 'page'));
replaceFile(join(folder, 'stamp'), '');
// A source that changed during the build is newer.
utimesSync(join(folder, 'stamp'), started / 1000, started / 1000);
