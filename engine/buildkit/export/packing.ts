import type { LayerCompression } from '../../layers/threads/archive-messages.ts';
import { EngineError } from '../../lib/errors.ts';
import { annotationsOf } from './annotations.ts';

type Attributes = ReadonlyMap<string, string>;

export type Packing = Readonly<{
  /** In OCI's media types, or in docker's. */
  isOci: boolean;
  /** Undefined: layers are plain archives. */
  compression: LayerCompression | undefined;
  /** Layers that came in another form are compressed anew. */
  isForced: boolean;
  annotations: Readonly<Record<string, string>>;
}>;

/** The highest levels; a client may name higher ones. */
const MAX_LEVELS: Readonly<Record<LayerCompression['kind'], number>> = { gzip: 9, zstd: 22 };

/** Throws `notImplemented` for forms of layers that we do not write. Throws `invalid` for levels that there are not. */
export function packingOf(type: string, attributes: Attributes): Packing {
  const name = attributes.get('compression') ?? 'gzip';
  if (name !== 'gzip' && name !== 'zstd' && name !== 'uncompressed')
    throw new EngineError(
      'notImplemented',
      `the compression ${name} is not implemented: use gzip, zstd or uncompressed`,
    );
  const isOci = attributes.get('oci-mediatypes') ?? String(type === 'oci');
  return {
    isOci: isOci === 'true' || name === 'zstd', // docker has no media type for it
    compression: name === 'uncompressed' ? undefined : { kind: name, ...levelOf(attributes, name) },
    isForced: attributes.get('force-compression') === 'true',
    annotations: annotationsOf(attributes, 'manifest'),
  };
}

function levelOf(attributes: Attributes, kind: LayerCompression['kind']): { level?: number } {
  const text = attributes.get('compression-level');
  if (text === undefined || text === '') return {};
  if (!/^\d{1,9}$/.test(text))
    throw new EngineError('invalid', `non-integer value ${text} specified for compression-level`);
  return { level: Math.min(Number(text), MAX_LEVELS[kind]) };
}
