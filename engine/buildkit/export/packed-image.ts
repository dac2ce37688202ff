import { existsSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

import type { Engine } from '../../engine.ts';
import { bytesOf } from '../../images/archives/archive-parts.ts';
import type { Image } from '../../images/store.ts';
import { archiveSource } from '../../layers/archive-source.ts';
import { sha256 } from '../../layers/chain-id.ts';
import type { Layer } from '../../layers/records.ts';
import type { LayerCompression } from '../../layers/threads/archive-messages.ts';
import { compressionOf } from '../../layers/threads/compression.ts';
import { EngineError } from '../../lib/errors.ts';
import {
  DOCKER_CONFIG,
  DOCKER_LAYER,
  DOCKER_MANIFEST,
  OCI_CONFIG,
  OCI_LAYER,
  OCI_MANIFEST,
  type Descriptor,
} from '../../registry/manifests.ts';
import type { Packing } from './packing.ts';

type Needs = Pick<Engine, 'archives' | 'blobs' | 'images' | 'layers'>;

/** A part of an image, with its bytes, each piece of which is valid until the next one is asked for. */
export type Blob = Readonly<{ descriptor: Required<Descriptor>; read: () => AsyncIterable<Uint8Array> }>;

/** An image as a registry has it. Its layers are leased until it is disposed. */
export type PackedImage = Disposable & Readonly<{ manifest: Blob; config: Blob; layers: readonly Blob[] }>;

/** Compresses the layers into a folder, but for those that came compressed. */
export async function packImage(
  engine: Needs,
  image: Image,
  folder: string,
  { isOci, annotations, ...how }: Packing,
  signal: AbortSignal,
): Promise<PackedImage> {
  using leases = new DisposableStack();
  for (const chainId of image.layers) leases.use(engine.layers.lease(chainId));
  const layers: Blob[] = [];
  for (const chainId of image.layers) {
    signal.throwIfAborted();
    const layer = engine.layers.get(chainId)!;
    const { compression } = how;
    const isPlain = compression === undefined;
    layers.push(
      isPlain ? plain(engine, layer, isOci) : await compressed(engine, layer, folder, { ...how, isOci, compression }),
    );
  }
  const json = engine.images.jsonOf(image.id);
  const config = textBlob(json, isOci ? OCI_CONFIG : DOCKER_CONFIG);
  const text = JSON.stringify(
    {
      schemaVersion: 2,
      mediaType: isOci ? OCI_MANIFEST : DOCKER_MANIFEST,
      config: config.descriptor,
      layers: layers.map(({ descriptor }) => descriptor),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    undefined,
    2,
  );
  const manifest = textBlob(text, isOci ? OCI_MANIFEST : DOCKER_MANIFEST);
  const held = leases.move();
  return { manifest, config, layers, [Symbol.dispose]: () => held.dispose() };
}

/** A document as a part of an image. */
export function textBlob(text: string, mediaType: string): Blob {
  const bytes = Buffer.from(text);
  return {
    descriptor: { mediaType, digest: sha256(text), size: bytes.length },
    // oxlint-disable-next-line require-await -- other parts have to wait
    read: async function* read() {
      yield bytes;
    },
  };
}

type Compressing = Pick<Packing, 'isOci' | 'isForced'> & Readonly<{ compression: LayerCompression }>;

/** A compressed layer, from a file in the folder unless it came compressed: in the wanted form, or in any if none is forced. */
export async function compressed(
  engine: Needs,
  layer: Layer,
  folder: string,
  { isOci, isForced, compression }: Compressing,
): Promise<Blob> {
  const source = sourceOf(engine, layer);
  const typeOf = (kind: LayerCompression['kind']): string =>
    isOci || kind !== 'gzip' ? `${OCI_LAYER}+${kind}` : DOCKER_LAYER;
  const own = source.kind === 'whole' ? await compressionOf(source.file) : 'none';
  const isFit = isForced
    ? own === compression.kind && compression.level === undefined
    : own === 'gzip' || own === 'zstd';
  if (source.kind === 'whole' && isFit && (own === 'gzip' || own === 'zstd')) {
    const { size } = await stat(source.file);
    const descriptor = { mediaType: typeOf(own), digest: layer.blob, size };
    return { descriptor, read: () => bytesOf(source.file) };
  }
  const path = join(folder, `layer-${layer.chainId.slice('sha256:'.length)}.tar`);
  if (existsSync(path)) await rm(path); // of another platform with the same layer
  const { digest, sizeBytes } = await engine.archives.compress(source, path, () => undefined, compression);
  return { descriptor: { mediaType: typeOf(compression.kind), digest, size: sizeBytes }, read: () => bytesOf(path) };
}

function plain(engine: Needs, layer: Layer, isOci: boolean): Blob {
  const { diffId, archiveBytes } = layer;
  const source = sourceOf(engine, layer);
  if (archiveBytes === undefined) throw lost(layer);
  const mediaType = isOci ? OCI_LAYER : DOCKER_LAYER.replace('.gzip', '');
  return {
    descriptor: { mediaType, digest: diffId, size: archiveBytes },
    read: () => engine.archives.read(source),
  };
}

function sourceOf(engine: Needs, layer: Layer): NonNullable<ReturnType<typeof archiveSource>> {
  const source = archiveSource(engine, layer);
  if (source === undefined) throw lost(layer);
  return source;
}

function lost({ diffId }: Layer): EngineError {
  return new EngineError('failed', `the layer ${diffId} was lost meanwhile: build its image again`);
}
