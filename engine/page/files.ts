import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';

import { hasCode } from '../lib/errors.ts';

const FOLDER = join(import.meta.dirname, '../../build/app/page');

const TYPES: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

/**
 * Nothing of another origin, no script in the page itself. Styles may be: the terminal makes its own, and without URLs of
 * other origins they can send nothing.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** For every answer of the page's port. */
export const PAGE_HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

/** An answer of the API that a browser opens as a page runs nothing: its bytes come from containers. */
export const API_HEADERS = {
  ...PAGE_HEADERS,
  'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
} as const;

export type PageFile = Readonly<{ body: Buffer; type: string; isCompressed: boolean }>;

/** A bundled file by its name, compressed if the client takes it; undefined: there is none. */
export async function pageFile(name: string, takesGzip: boolean): Promise<PageFile | undefined> {
  const type = TYPES.get(extname(name));
  if (type === undefined || !/^[\w-]+\.\w+$/.test(name)) return undefined;
  try {
    const body = await readFile(join(FOLDER, takesGzip ? `${name}.gz` : name));
    return { body, type, isCompressed: takesGzip };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
