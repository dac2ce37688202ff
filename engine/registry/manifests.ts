import { Type, type Static } from 'typebox';

import { parseBoundedJson, UnboundedJsonError } from '../lib/bounded-json.ts';
import { lazyCheck } from '../lib/lazy-check.ts';
import { sha256 } from './digest.ts';
import { RegistryError } from './errors.ts';
import { OLD_MANIFEST, OLD_SIGNED_MANIFEST, parseOldManifest, signedPart, type OldManifest } from './old-manifest.ts';

const Nullable = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const Digest = Type.String({ pattern: '^sha256:[0-9a-f]{64}$' });

/** A reference to a part of an image, whose digest and size are checked after the download. */
const Descriptor = Type.Object({
  mediaType: Nullable(Type.String()),
  digest: Digest,
  size: Type.Integer({ minimum: 0 }),
});
export type Descriptor = Static<typeof Descriptor>;

const Platform = Type.Object({
  os: Type.String(),
  architecture: Type.String(),
  variant: Nullable(Type.String()),
  'os.version': Nullable(Type.String()),
});
export type Platform = Static<typeof Platform>;

const ImageManifest = Type.Object({
  schemaVersion: Type.Literal(2),
  mediaType: Nullable(Type.String()),
  config: Descriptor,
  layers: Type.Array(Descriptor, { maxItems: 127 }),
});
export type ImageManifest = Static<typeof ImageManifest>;

const IndexEntry = Type.Intersect([
  Descriptor,
  Type.Object({
    platform: Nullable(Platform),
    annotations: Nullable(Type.Record(Type.String(), Type.String())),
    artifactType: Nullable(Type.String()),
  }),
]);
const ImageIndex = Type.Object({
  schemaVersion: Type.Literal(2),
  mediaType: Nullable(Type.String()),
  manifests: Type.Array(IndexEntry, { maxItems: 1000 }),
});
type ImageIndex = Static<typeof ImageIndex>;
export type IndexEntry = Static<typeof IndexEntry>;

export const DOCKER_MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
export const DOCKER_CONFIG = 'application/vnd.docker.container.image.v1+json';
export const PLUGIN_CONFIG = 'application/vnd.docker.plugin.v1+json';
export const CACHE_CONFIG = 'application/vnd.buildkit.cacheconfig.v0';
export const DOCKER_LAYER = 'application/vnd.docker.image.rootfs.diff.tar.gzip';
export const OCI_CONFIG = 'application/vnd.oci.image.config.v1+json';
export const OCI_LAYER = 'application/vnd.oci.image.layer.v1.tar';
const DOCKER_LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';

export const ACCEPTED = [DOCKER_MANIFEST, OCI_MANIFEST, DOCKER_LIST, OCI_INDEX, OLD_SIGNED_MANIFEST].join(', ');

export const MANIFEST_BYTES = 4 * 1024 * 1024;

const LAYER =
  /^application\/vnd\.(?:docker\.image\.rootfs\.(?:foreign\.)?diff\.tar|oci\.image\.layer\.(?:nondistributable\.)?v1\.tar)/;
const CONFIG = new Set([DOCKER_CONFIG, OCI_CONFIG, 'text/html', '']);

const OLD_TYPES: ReadonlySet<string> = new Set([OLD_SIGNED_MANIFEST, OLD_MANIFEST]);
/** Their media types in registries of that time. */
const UNTYPED: ReadonlySet<string> = new Set(['', 'application/json']);

const checkedManifest = lazyCheck(ImageManifest);
/** A cache has the layers of many images. */
const checkedCache = lazyCheck(
  Type.Intersect([
    Type.Omit(ImageManifest, ['layers']),
    Type.Object({ layers: Type.Array(Descriptor, { maxItems: 1000 }) }),
  ]),
);
const checkedIndex = lazyCheck(ImageIndex);

/** A document of a registry, with the bytes that its digest is of. */
export type Manifest = { digest: string; mediaType: string; bytes: Buffer } & (
  | { image: ImageManifest }
  | { index: ImageIndex }
  | { old: OldManifest }
);

/** The kinds of manifests by the media types of their configuration. */
export type Artifact = 'image' | 'plugin' | 'cache';
const CONFIGS: Readonly<Record<Artifact, ReadonlySet<string>>> = {
  image: CONFIG,
  plugin: new Set([PLUGIN_CONFIG]),
  cache: new Set([...CONFIG, CACHE_CONFIG]),
};

/**
 * Reads a manifest of an image or a plugin, or an index of several. `contentType` is what the registry calls it, `expected`
 * the digest that it must have, if that is known.
 */
export function parseManifest(
  bytes: Buffer,
  contentType: string,
  { expected, wanted = 'image' }: { expected?: string | undefined; wanted?: Artifact } = {},
): Manifest {
  const isOld = OLD_TYPES.has(contentType) || (UNTYPED.has(contentType) && parseJson(bytes).schemaVersion === 1);
  const signed = isOld ? signedPart(bytes) : bytes;
  const digest = sha256(signed);
  if (expected !== undefined && digest !== expected) {
    throw new RegistryError(`manifest verification failed for digest ${expected}`);
  }
  if (isOld && wanted === 'image') {
    return { digest, mediaType: contentType, bytes: signed, old: parseOldManifest(signed, digest) };
  }
  const json = parseJson(bytes);
  const type = typeof json.mediaType === 'string' && json.mediaType !== '' ? json.mediaType : contentType;
  const described = { digest, mediaType: type, bytes: signed };
  if (isIndex(type)) return { ...described, index: checkDocument(checkedIndex, json, digest) };
  if (isManifest(type)) {
    const image = checkDocument(wanted === 'cache' ? checkedCache : checkedManifest, json, digest);
    checkTypes(image, CONFIGS[wanted]);
    return { ...described, image };
  }
  throw new RegistryError(`unsupported manifest media type: ${JSON.stringify(type)}`);
}

/** Whether a document with this media type lists others. */
export function isIndex(mediaType: string): boolean {
  return mediaType === DOCKER_LIST || mediaType === OCI_INDEX;
}

/** Whether a document with this media type describes one image, or an attestation. */
export function isManifest(mediaType: string): boolean {
  return mediaType === DOCKER_MANIFEST || mediaType === OCI_MANIFEST;
}

/** The entries of an index, which archives may have without a version. Throws `RegistryError` for anything else. */
export function readIndex(text: string, digest: string): readonly IndexEntry[] {
  return checkDocument(checkedIndex, { schemaVersion: 2, ...parseJson(Buffer.from(text)) }, digest).manifests;
}

/** The configuration and the layers of a manifest, also of one that describes no image, such as an attestation. */
export function readManifest(text: string, digest: string): ImageManifest {
  return checkDocument(checkedManifest, { schemaVersion: 2, ...parseJson(Buffer.from(text)) }, digest);
}

/** The manifest of an image, with the same bytes as docker's. */
export function writeManifest(config: Descriptor, layers: readonly Descriptor[]): Buffer {
  const described = ({ mediaType, size, digest }: Descriptor): object => ({ mediaType, size, digest });
  const manifest = {
    schemaVersion: 2,
    mediaType: DOCKER_MANIFEST,
    config: described(config),
    layers: layers.map(described),
  };
  return Buffer.from(JSON.stringify(manifest, undefined, 3));
}

/** Other kinds of artifacts use the same manifests. */
function checkTypes({ config, layers }: ImageManifest, configs: ReadonlySet<string>): void {
  if (!configs.has(config.mediaType ?? '')) {
    throw new RegistryError(`unsupported media type of the configuration: ${JSON.stringify(config.mediaType)}`);
  }
  const other = layers.find(({ mediaType }) => !LAYER.test(mediaType ?? '') || mediaType!.endsWith('+encrypted'));
  if (other !== undefined) {
    throw new RegistryError(`unsupported media type of a layer: ${JSON.stringify(other.mediaType ?? '')}`);
  }
}

function checkDocument<T>(
  schema: {
    Check(value: unknown): value is T;
    Errors(value: unknown): [boolean, { instancePath?: string; message?: string }[]];
  },
  json: unknown,
  digest: string,
): T {
  if (schema.Check(json)) return json;
  const [, [first]] = schema.Errors(json);
  throw new RegistryError(`invalid manifest ${digest}: ${first?.instancePath || 'it'} ${first?.message ?? ''}`);
}

function parseJson(bytes: Buffer): Record<string, unknown> {
  try {
    const json = parseBoundedJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (typeof json === 'object' && json !== null) return json as Record<string, unknown>;
  } catch (error) {
    if (error instanceof UnboundedJsonError) throw new RegistryError(`invalid manifest: ${error.message}`);
  }
  throw new RegistryError('invalid manifest: it is not JSON');
}
