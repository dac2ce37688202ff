/**
 * Finds folders whose files import each other in a circle.
 *
 * Inside the engine types count like values; between packages they do not. A folder is one of `engine/`, `gateway/` or
 * `limiter/`, or another whole package. Files directly in `engine/`, `gateway/` or `limiter/` compose the folders and
 * do not count.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const IMPORT = /^(?:import|export)\s+(type\b)?[^;]*?from\s+'([^']+)';|^import\s+'([^']+)';|\bimport\('([^']+)'\)/gm;

export type Arrow = Readonly<{ from: string; to: string; files: readonly string[] }>;

/** Each circle once: its folders, and the imports that close it. */
export function folderCycles(root: string): { folders: string[]; arrows: Arrow[] }[] {
  const arrows = arrowsOf(root);
  const targets = new Map<string, Set<string>>();
  for (const { from, to } of arrows) targets.set(from, (targets.get(from) ?? new Set()).add(to));
  const circles = stronglyConnected(targets).filter((folders) => folders.length > 1);
  return circles.map((folders) => ({
    folders: folders.toSorted(),
    arrows: arrows.filter(({ from, to }) => folders.includes(from) && folders.includes(to)),
  }));
}

/** Each folder that imports from another one. */
export function arrowsOf(root: string): Arrow[] {
  const found = new Map<string, { from: string; to: string; files: string[] }>();
  const packages = ['template', 'engine', 'client', 'cli', 'limiter', 'gateway'];
  const files = globSync(
    packages.map((name) => `${name}/**/*.ts`),
    { cwd: root, exclude: ['**/node_modules/**', '**/*.test.ts', '**/test-*.ts', 'gateway/{tests,clients}/**'] },
  );
  for (const file of files) {
    for (const target of importsOf(join(root, file), file)) {
      const [from, to] = [folderOf(file), folderOf(target)];
      if (from === undefined || to === undefined || from === to) continue;
      const arrow = found.get(`${from} ${to}`) ?? { from, to, files: [] };
      found.set(`${from} ${to}`, arrow);
      arrow.files.push(`${file} → ${target}`);
    }
  }
  return [...found.values()];
}

function importsOf(path: string, file: string): string[] {
  const found: string[] = [];
  for (const [, type, from, bare, dynamic] of readFileSync(path, 'utf8').matchAll(IMPORT)) {
    const specifier = from ?? bare ?? dynamic ?? '';
    const isLocal = specifier.startsWith('.');
    const target = isLocal ? normalize(join(dirname(file), specifier)) : specifier.replace(/^@gantry\//, '');
    const counts = type === undefined || (file.startsWith('engine/') && target.startsWith('engine/'));
    if (counts && target.endsWith('.ts')) found.push(target);
  }
  return found;
}

/** Undefined for files that compose the folders. */
function folderOf(file: string): string | undefined {
  const [name = '', folder = '', ...rest] = file.split('/');
  if (!['engine', 'gateway', 'limiter'].includes(name)) return name;
  return rest.length === 0 ? undefined : `${name}/${folder}`;
}

/** Tarjan's algorithm. */
function stronglyConnected(targets: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (folder: string): void => {
    index.set(folder, index.size);
    low.set(folder, index.get(folder)!);
    stack.push(folder);
    for (const target of targets.get(folder) ?? []) {
      if (!index.has(target)) visit(target);
      if (stack.includes(target)) low.set(folder, Math.min(low.get(folder)!, low.get(target)!));
    }
    if (low.get(folder) === index.get(folder)) circles.push(stack.splice(stack.indexOf(folder)));
  };
  for (const folder of targets.keys()) if (!index.has(folder)) visit(folder);
  return circles;
}
