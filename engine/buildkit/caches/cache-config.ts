import { Type, type Static } from 'typebox';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { RegistryError } from '../../registry/errors.ts';

/** The field of a cache in the configuration of an image. */
export const INLINE_FIELD = 'moby.buildkit.cache.v0';

const MAX_LAYERS = 1000;
const MAX_RECORDS = 10_000;

const Time = Type.Optional(Type.String({ maxLength: 64 }));
const CacheLayer = Type.Object({
  /** Digest of the compressed layer; within the configuration of an image that of the plain one. */
  blob: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
  /** The layer below among these; -1: one that is not in the cache. */
  parent: Type.Optional(Type.Integer({ minimum: -1, maximum: MAX_LAYERS })),
  annotations: Type.Optional(
    Type.Object({
      mediaType: Type.Optional(Type.String({ maxLength: 200 })),
      diffID: Type.Optional(Type.String({ maxLength: 100 })),
      size: Type.Optional(Type.Integer({ minimum: 0 })),
      createdAt: Time,
    }),
  ),
});
const list = <T extends Type.TSchema>(schema: T, maxItems: number) =>
  Type.Optional(Type.Union([Type.Array(schema, { maxItems }), Type.Null()]));
const CacheRecord = Type.Object({
  /** The key of the step. */
  digest: Type.Optional(Type.String({ maxLength: 200 })),
  layers: list(Type.Object({ layer: Type.Integer({ minimum: 0 }), createdAt: Time }), 100),
  chains: list(Type.Object({ createdAt: Time }), 100),
});
const CacheConfig = Type.Object({
  layers: list(CacheLayer, MAX_LAYERS),
  records: list(CacheRecord, MAX_RECORDS),
});
export type CacheLayer = Static<typeof CacheLayer>;

/** A step of a cache: its key and that of the step before, its time, and its layer if it changed files. */
export type WrittenStep = Readonly<{
  key: string;
  parent: string;
  createdAt: string;
  layer: CacheLayer | undefined;
}>;
export type ReadStep = Omit<WrittenStep, 'parent'>;

const checkedConfig = lazyCheck(CacheConfig);

/** In the form of BuildKit's caches; the keys of their records are our own. */
export function formatCache(layers: readonly CacheLayer[], steps: readonly WrittenStep[]): string {
  const places = new Map(steps.map(({ key }, index) => [key, index]));
  const records = steps.map(({ key, parent, createdAt, layer }) => {
    const link = places.get(parent);
    const inputs = link === undefined ? {} : { inputs: [[{ link }]] };
    const result =
      layer === undefined
        ? { chains: [{ layers: [], createdAt }] }
        : { layers: [{ layer: layers.indexOf(layer), createdAt }] };
    return { ...result, digest: key, ...inputs };
  });
  return JSON.stringify({ layers, records });
}

/** Throws `RegistryError` for anything that is no cache. */
export function parseCache(text: string): ReadStep[] {
  const json = parsed(text);
  if (!checkedConfig.Check(json)) {
    const [, [first]] = checkedConfig.Errors(json);
    throw new RegistryError(`invalid cache: ${first?.instancePath || 'it'} ${first?.message ?? ''}`);
  }
  const { layers, records } = json;
  return (records ?? []).flatMap(({ digest: key, layers: results, chains }): ReadStep[] => {
    const [result] = results ?? [];
    const [chain] = chains ?? [];
    const createdAt = timeIn(result?.createdAt ?? chain?.createdAt);
    if (key === undefined || createdAt === undefined) return [];
    if (result === undefined) return [{ key, createdAt, layer: undefined }];
    const layer = layers?.[result.layer];
    return layer === undefined ? [] : [{ key, createdAt, layer }];
  });
}

function parsed(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    if (error instanceof UnboundedJsonError) throw new RegistryError(`invalid cache: ${error.message}`);
    throw new RegistryError('invalid cache: it is not JSON', { cause: error });
  }
}

function timeIn(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : Temporal.Instant.from(text).toString();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
