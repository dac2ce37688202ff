import { join } from 'node:path';

import type { Layer } from '../layers/records.ts';
import { EMPTY_CONFIG } from '../records/run-config.ts';
import type { Descriptor, IndexEntry, Platform } from '../registry/manifests.ts';
import type { HistoryStep } from './configuration/history.ts';
import type { Listed } from './list.ts';
import type { Statement } from './manifests/attestations.ts';
import type { ManifestSummary } from './manifests/summaries.ts';
import type { Removal } from './removal/delete.ts';
import type * as wire from './schema.ts';
import type { Image } from './store.ts';
import type { Distribution } from './transfers/distribution.ts';

const NEVER = '0001-01-01T00:00:00Z';

/** Sizes, counts and manifests that cost a look at other records; -1 and undefined mean "not computed". */
type Computed = Readonly<{
  bytes: number;
  sharedBytes: number;
  containers: number;
  descriptor: Descriptor | undefined;
  manifests: readonly ManifestSummary[] | undefined;
  repositories: readonly string[];
}>;

export function imageSummary({ image, tags, digests }: Listed, computed: Computed): wire.ImageSummary {
  const { bytes, sharedBytes, containers, descriptor, manifests, repositories } = computed;
  return {
    Id: image.id,
    ParentId: image.parentId ?? '',
    RepoTags: tags,
    RepoDigests: digests,
    Created: image.createdAt === undefined ? 0 : Math.floor(image.createdAt.epochMilliseconds / 1000),
    Size: bytes,
    VirtualSize: bytes,
    SharedSize: sharedBytes,
    Containers: containers,
    Labels: image.labels === null ? null : { ...image.labels }, // an empty map that the configuration has is shown
    ...(descriptor !== undefined && { Descriptor: describe(descriptor) }),
    ...(manifests !== undefined && { Manifests: manifests.map((each) => manifestSummary(each, repositories)) }),
  };
}

/** One manifest of an image; `repositories`: its known origins. */
function manifestSummary(summary: ManifestSummary, repositories: readonly string[]): wire.ManifestSummary {
  const { entry, isAvailable, contentBytes, kind } = summary;
  const unpacked = kind === 'image' ? summary.unpackedBytes : 0;
  return {
    ID: entry.digest,
    Descriptor: describe(entry),
    Available: isAvailable,
    Size: { Content: contentBytes, Total: contentBytes + unpacked },
    Kind: kind,
    ...(kind === 'image' && {
      ImageData: {
        Platform: platformOf(summary.platform),
        ...(isAvailable && repositories.length > 0 && { Identity: identityOf(repositories) }),
        Size: { Unpacked: unpacked },
        Containers: summary.containers.length > 0 ? [...summary.containers] : null,
      },
    }),
    ...(kind === 'attestation' && { AttestationData: { For: summary.attests } }),
  };
}

export function attestationStatement({ layer, predicateType, content }: Statement): wire.AttestationStatement {
  const statement = content === undefined ? {} : { Statement: content };
  return { Descriptor: describe(layer), PredicateType: predicateType, ...statement };
}

/** A descriptor without the content that it may carry itself. */
export function describe(entry: IndexEntry): wire.ManifestDescriptor {
  const { mediaType, digest, size, annotations, platform, artifactType } = entry;
  return {
    mediaType: mediaType ?? '',
    digest,
    size,
    ...(annotations && { annotations }),
    ...(platform && { platform: platformOf(platform) }),
    ...(artifactType && { artifactType }),
  };
}

function platformOf(platform: Platform): wire.ManifestDescriptor['platform'] & object {
  const { architecture, os, variant } = platform;
  const version = platform['os.version'];
  return { architecture, os, ...(version && { 'os.version': version }), ...(variant && { variant }) };
}

function identityOf(repositories: readonly string[]): wire.Identity {
  return { Pull: repositories.map((Repository) => ({ Repository })) };
}

export function imageInspect(
  image: Image,
  names: { tags: string[]; digests: string[]; repositories: string[]; taggedAt: Temporal.Instant | undefined },
  layers: { chain: readonly Layer[]; directory: string },
  documents: { descriptor: Descriptor | undefined; manifests: readonly ManifestSummary[] | undefined },
): wire.ImageInspect {
  return {
    Id: image.id,
    RepoTags: names.tags,
    RepoDigests: names.digests,
    Parent: image.parentId ?? '',
    Comment: image.comment || (image.history.at(-1)?.comment ?? ''),
    Created: image.createdAt?.toString() ?? NEVER,
    Container: image.container,
    ContainerConfig: { ...EMPTY_CONFIG, ...image.wireContainerConfig },
    EngineVersion: image.engineVersion,
    DockerVersion: image.engineVersion,
    Author: image.author,
    Config: { ...EMPTY_CONFIG, ...image.wireConfig },
    Architecture: image.architecture,
    ...(image.variant !== '' && { Variant: image.variant }),
    Os: image.os,
    Size: image.sizeBytes,
    VirtualSize: image.sizeBytes,
    GraphDriver: { Name: 'overlay2', Data: graphDriverData(layers.chain, layers.directory) },
    RootFS: { Type: 'layers', ...(image.diffIds.length > 0 && { Layers: [...image.diffIds] }) },
    Metadata: { LastTagTime: names.taggedAt?.toString() ?? NEVER },
    ...(documents.descriptor !== undefined && { Descriptor: describe(documents.descriptor) }),
    ...(documents.manifests !== undefined && {
      Manifests: documents.manifests.map((each) => manifestSummary(each, [])),
    }),
    ...(names.repositories.length > 0 && { Identity: identityOf(names.repositories) }),
  };
}

/** The folders of the topmost layer and of those below it. There is no merged folder, because nothing is mounted. */
function graphDriverData([top, ...lower]: readonly Layer[], directory: string): Record<string, string> {
  if (top === undefined) return {};
  const data: Record<string, string> = { UpperDir: join(directory, top.folder) };
  if (lower.length > 0) data.LowerDir = lower.map(({ folder }) => join(directory, folder)).join(':');
  return data;
}

export function historyStep(step: HistoryStep): wire.HistoryStep {
  return {
    Id: step.imageId ?? '<missing>',
    Created: step.created === undefined ? 0 : Math.floor(step.created.epochMilliseconds / 1000),
    CreatedBy: step.createdBy,
    Tags: step.tags.length > 0 ? step.tags : null,
    Size: step.sizeBytes,
    Comment: step.comment,
  };
}

/** An image as its registry has it, without fields that are empty. */
export function distributionInspect({ mediaType, digest, size, platforms }: Distribution): wire.DistributionInspect {
  return {
    Descriptor: { mediaType, digest, size },
    Platforms: platforms.map(({ architecture, os, variant }) => ({ architecture, os, ...(variant && { variant }) })),
  };
}

export function deleteResult(removal: Removal): wire.DeleteResult {
  return 'untagged' in removal ? { Untagged: removal.untagged } : { Deleted: removal.deleted };
}
