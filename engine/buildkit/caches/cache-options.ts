import type { CacheOptions } from '../messages/control.ts';
import type { Received } from '../wire/message.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';

type Attributes = ReadonlyMap<string, string>;

/** One `--cache-to` or `--cache-from` of a client. */
export type CacheEntry = Readonly<{ type: string; attributes: Attributes }>;

/** The caches of a build: steps that it takes from others, and places for its own. */
export type Caches = Readonly<{ imports: readonly CacheEntry[]; exports: readonly CacheEntry[]; isInline: boolean }>;

export const NO_CACHES: Caches = { imports: [], exports: [], isInline: false };

const MAX_ENTRIES = 20;
const IMPORTS: ReadonlySet<string> = new Set(['registry', 'local']);
const EXPORTS: ReadonlySet<string> = new Set(['inline', 'registry', 'local']);
const COMPRESSIONS: ReadonlySet<string> = new Set(['gzip', '']);

/** Throws for kinds of caches that we do not have, and for options without which there is none. */
export function cachesOf(options: Received<typeof CacheOptions> | undefined): Caches {
  const { imports = [], exports = [] } = options ?? {};
  if (imports.length + exports.length > MAX_ENTRIES)
    throw new GrpcError(StatusCode.INVALID_ARGUMENT, `the build has more than ${MAX_ENTRIES} caches`);
  for (const { type, attributes } of imports) {
    if (!IMPORTS.has(type)) throw unknown('from', type);
    requireOf(attributes, type, type === 'local' ? 'digest' : 'ref', 'importer');
  }
  for (const { type, attributes } of exports) {
    if (!EXPORTS.has(type)) throw unknown('to', type);
    if (type !== 'inline') requireOf(attributes, type, type === 'local' ? 'dest' : 'ref', 'exporter');
    const compression = attributes.get('compression') ?? '';
    if (!COMPRESSIONS.has(compression))
      throw new GrpcError(
        StatusCode.UNIMPLEMENTED,
        `the compression ${compression} of a cache is not implemented: use gzip`,
      );
  }
  return {
    imports,
    exports: exports.filter(({ type }) => type !== 'inline'),
    isInline: exports.some(({ type }) => type === 'inline'),
  };
}

function requireOf(attributes: Attributes, type: string, name: string, kind: string): void {
  if ((attributes.get(name) ?? '') !== '') return;
  throw new GrpcError(StatusCode.INVALID_ARGUMENT, `${type} cache ${kind} requires ${name}`);
}

function unknown(direction: 'from' | 'to', type: string): GrpcError {
  const known = [...(direction === 'to' ? EXPORTS : IMPORTS)].join(', ');
  return new GrpcError(
    StatusCode.UNIMPLEMENTED,
    `--cache-${direction} type=${JSON.stringify(type)} is not implemented: use ${known}`,
  );
}
