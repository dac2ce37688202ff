import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const root = dirname(import.meta.dirname);

/** The packages of npm's registry that the test of our packages (`build-package.test.ts`) installs beside them. */
export function foreignPackages(): readonly string[] {
  return [
    ...['fastify', '@types/node'].map((name) => {
      const manifest = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8');
      return `${name}@${(JSON.parse(manifest) as { version: string }).version}`;
    }),
    ...['express@5', '@types/express@5', 'hono@4', `node-22@npm:node-linux-${process.arch}@22`],
  ];
}

/** Installs packages into a project's folder, from npm's cache where it has them. */
export function installInto(project: string, packages: readonly string[]): void {
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['install', ...options, ...packages], { cwd: project, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Brings the foreign packages, and what ours depend on, into npm's cache: the tests run without a network. */
export function fetchForeignPackages(): void {
  const project = mkdtempSync(join(tmpdir(), 'gantry-packages-'));
  try {
    const manifests = ['limiter', 'client'].map((name) => readFileSync(join(root, name, 'package.json'), 'utf8'));
    const needed = manifests.flatMap((text) =>
      Object.entries((JSON.parse(text) as { dependencies?: Record<string, string> }).dependencies ?? {}),
    );
    const ofRegistry = needed
      .filter(([name]) => !name.startsWith('@gantry/'))
      .map(([name, range]) => `${name}@${range}`);
    installInto(project, [...foreignPackages(), ...ofRegistry]);
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}
