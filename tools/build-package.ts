/**
 * Builds a workspace for publication: JavaScript with types and source maps in its folder `build`, without tests. npm
 * runs it before it packs: Node takes no TypeScript from node_modules.
 *
 * Types that come from another workspace are put in as well, since that one may not be published.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const root = dirname(import.meta.dirname);

/** Only tests need them. */
const NOT_PUBLISHED = ['*.test.ts', 'test-*.ts'];

/** `import … from '…'`, `export … from '…'`, `import('…')`, `declare module '…'`. */
const SPECIFIER = /(from |import\(|import )(['"])([^'"]+)\2/g;

const [name = ''] = process.argv.slice(2);
if (!existsSync(join(root, name, 'package.json'))) throw new Error('usage: build-package.ts WORKSPACE');
build(join(root, name));

function build(folder: string): void {
  const target = join(folder, 'build');
  const everything = join(folder, 'build/all');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target);
  compile(folder, everything, {
    sourceMap: true,
    inlineSources: true,
    rewriteRelativeImportExtensions: true,
    target: 'es2023', // Node 22 reads it
  });
  // The other workspaces as parts of this program: the compiler makes no types of files in node_modules.
  const paths = { '@gantry/*': [join(root, '*')] };
  compile(folder, everything, { declaration: true, emitDeclarationOnly: true, paths });
  const own = join(everything, relative(root, folder));
  cpSync(own, target, { recursive: true });
  for (const file of globSync('**/*.{js,d.ts}', { cwd: own })) rewrite(join(target, file), file, target, everything);
  // Files that the program reads beside itself, and the compiler does not see.
  for (const file of globSync('**/*.lua', { cwd: folder, exclude: ['node_modules/**', 'build/**'] })) {
    cpSync(join(folder, file), join(target, file));
  }
  rmSync(everything, { recursive: true });
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE')); // npm packs the one beside package.json
}

function compile(folder: string, outDir: string, options: Readonly<Record<string, unknown>>): void {
  const files = globSync('**/*.ts', {
    cwd: folder,
    exclude: ['node_modules/**', 'build/**', ...NOT_PUBLISHED.map((one) => `**/${one}`)],
  });
  const project = join(folder, 'build/tsconfig.json');
  const compilerOptions = { noEmit: false, rootDir: root, outDir, ...options };
  const extended = join(root, 'tsconfig.json');
  const settings = { extends: extended, compilerOptions, include: [], files: files.map((file) => join(folder, file)) };
  writeFileSync(project, JSON.stringify(settings));
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', project], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error(`${folder} could not be compiled`);
  rmSync(project);
}

/** Names files as in the build, and adds the types of other workspaces. */
function rewrite(path: string, file: string, target: string, everything: string): void {
  const text = readFileSync(path, 'utf8');
  const written = text.replaceAll(SPECIFIER, (whole, before: string, quote: string, specifier: string) => {
    const named = nameOf(specifier, file, target, everything);
    return named === undefined ? whole : `${before}${quote}${named}${quote}`;
  });
  if (written !== text) writeFileSync(path, written);
}

/** Undefined: it stays unchanged. */
function nameOf(specifier: string, file: string, target: string, everything: string): string | undefined {
  if (specifier.startsWith('.')) return specifier.replace(/\.ts$/, '.js');
  const [, other] = /^@gantry\/(.+)\.ts$/.exec(specifier) ?? [];
  if (other === undefined) return undefined;
  bringTypes(other, target, everything);
  const path = relative(dirname(file), `${other}.js`);
  return path.startsWith('.') ? path : `./${path}`;
}

function bringTypes(module: string, target: string, everything: string): void {
  const file = `${module}.d.ts`;
  const path = join(target, file);
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true });
  cpSync(join(everything, file), path);
  for (const [, , , specifier = ''] of readFileSync(path, 'utf8').matchAll(SPECIFIER)) {
    if (specifier.startsWith('.'))
      bringTypes(join(dirname(module), specifier.replace(/\.[jt]s$/, '')), target, everything);
  }
  rewrite(path, file, target, everything);
}
