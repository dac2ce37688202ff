import { TarWriter } from '../archives/tar-writer.ts';
import type { Descriptor, Registries } from './registries.ts';

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const STATEMENT = 'application/vnd.in-toto+json';

type Platform = Readonly<{ os: string; architecture: string; variant?: string }>;
type Image = Descriptor & { id: string; layers: Descriptor[]; platform: Platform };

/** An index in a registry: images of three platforms with one layer in common, and an attestation to the first. */
export type MultiPlatform = Readonly<{
  digest: string;
  size: number;
  images: readonly Image[];
  host: Platform;
  attestation: Descriptor;
  /** The statement of the attestation, and the layer that holds it. */
  statement: object;
  layer: Descriptor;
}>;

/** The predicate type of the statement. */
export const PREDICATE = 'https://example.org/made-by/v1';

/** This machine's architecture in the words of images. */
export const HOST_ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;

const BASE = new TarWriter().add({ name: 'base', content: 'x'.repeat(10_000) }).end();

const FOREIGN: readonly Platform[] = [
  { os: 'linux', architecture: 's390x' },
  { os: 'linux', architecture: 'arm64', variant: 'v8' },
  { os: 'linux', architecture: 'amd64' },
];

/** Puts an index to a repository of a registry. Each image has its architecture in the file `/platform`. */
export async function putMultiPlatform(
  registries: Registries,
  repository: string,
  tag: string,
  { content = '', without = '', isAttested = true }: { content?: string; without?: string; isAttested?: boolean } = {},
): Promise<MultiPlatform> {
  const host = { os: 'linux', architecture: HOST_ARCHITECTURE };
  const others = FOREIGN.filter(({ architecture }) => ![HOST_ARCHITECTURE, without].includes(architecture));
  const images: Image[] = [];
  // This machine's platform comes last, so that a choice by the order is seen.
  for (const platform of [...others.toReversed(), host]) {
    const own = new TarWriter().add({ name: 'platform', content: `${platform.architecture}${content}` }).end();
    const { id, layers, ...described } = await registries.putImage(repository, '', [BASE, own], {
      fields: platform,
      config: { Labels: { platform: platform.architecture } },
    });
    images.push({ ...described, id, layers, platform });
  }
  const { attestation, layer, statement } = await putAttestation(registries, repository, images.at(-1)!.digest);
  const manifests = [
    ...images.map(({ mediaType, digest, size, platform }) => ({ mediaType, digest, size, platform })),
    ...(isAttested ? [attestation] : []),
  ];
  const { digest, size } = await registries.putManifest(
    repository,
    tag,
    { schemaVersion: 2, mediaType: INDEX, manifests },
    INDEX,
  );
  return { digest, size, images, host, attestation, layer, statement };
}

async function putAttestation(
  registries: Registries,
  repository: string,
  subject: string,
): Promise<Pick<MultiPlatform, 'attestation' | 'layer' | 'statement'>> {
  const statement = { _type: 'https://in-toto.io/Statement/v0.1', subject: [{ digest: subject }] };
  const blob = await registries.putBlob(repository, Buffer.from(JSON.stringify(statement)), STATEMENT);
  const layer = { ...blob, annotations: { 'in-toto.io/predicate-type': PREDICATE } };
  const json = {
    os: 'unknown',
    architecture: 'unknown',
    config: {},
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
  };
  const config = await registries.putBlob(repository, Buffer.from(JSON.stringify(json)), CONFIG);
  const manifest = { schemaVersion: 2, mediaType: MANIFEST, config, layers: [layer] };
  const attestation = {
    ...(await registries.putManifest(repository, '', manifest, MANIFEST)),
    annotations: { 'vnd.docker.reference.digest': subject, 'vnd.docker.reference.type': 'attestation-manifest' },
    platform: { architecture: 'unknown', os: 'unknown' },
  };
  return { attestation, layer, statement };
}
