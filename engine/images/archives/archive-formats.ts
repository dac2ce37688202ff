import { Type, type Static } from 'typebox';

import { sha256 } from '../../layers/chain-id.ts';
import { badArchive } from '../../layers/tar/tar-header.ts';
import { EngineError } from '../../lib/errors.ts';
import { goArchitecture } from '../configuration/architecture.ts';
import { parseImage } from '../configuration/image-json.ts';
import { parseRepoAndTag, type Reference } from '../names/reference.ts';
import { parseJson, type ArchiveFile, type ArchiveFiles } from './archive-files.ts';
import { readLegacyImages } from './legacy-archive.ts';

/** An image of an archive: its configuration byte for byte, and the files of its layers, base first. */
export type ArchivedImage = {
  id: string;
  json: string;
  diffIds: readonly string[];
  layers: ArchiveFile[];
  names: Reference[];
  parentId?: string;
};

const Nullable = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const Manifests = Type.Array(
  Type.Object({
    Config: Type.String(),
    RepoTags: Nullable(Type.Array(Type.String())),
    Layers: Nullable(Type.Array(Type.String())),
    Parent: Nullable(Type.String()),
  }),
);

const Digest = Type.String({ pattern: '^sha256:[0-9a-f]{64}$' });

const Descriptor = Type.Object({
  mediaType: Nullable(Type.String()),
  digest: Digest,
  annotations: Nullable(Type.Record(Type.String(), Type.String())),
  platform: Nullable(Type.Object({ os: Type.String(), architecture: Type.String(), variant: Nullable(Type.String()) })),
});
type Descriptor = Static<typeof Descriptor>;

const OciIndex = Type.Object({ manifests: Type.Array(Descriptor) });
const OciManifest = Type.Object({ config: Descriptor, layers: Type.Array(Descriptor) });

const INDEX_DEPTH = 4;
const NAME_ANNOTATIONS = ['io.containerd.image.name', 'org.opencontainers.image.ref.name'];

/** The images of an archive in any of three formats; an archive with two formats has the same images in both. */
export async function readImages(files: ArchiveFiles): Promise<ArchivedImage[]> {
  if (files.has('manifest.json')) return await readDockerArchive(files);
  if (files.has('index.json')) return await readOciLayout(files);
  const legacy = await readLegacyImages(files);
  if (legacy.length > 0) return legacy;
  throw badArchive('no image found: neither manifest.json, nor index.json, nor layers with a json file');
}

async function readDockerArchive(files: ArchiveFiles): Promise<ArchivedImage[]> {
  const manifests = await files.json(files.get('manifest.json'), Manifests);
  return await Promise.all(
    manifests.map(async ({ Config, RepoTags, Layers, Parent }) => ({
      ...(await imageOf(
        files,
        files.get(Config),
        (Layers ?? []).map((path) => files.get(path)),
      )),
      names: (RepoTags ?? []).map((name) => parseRepoAndTag(name)),
      ...(Parent && { parentId: Parent }),
    })),
  );
}

async function readOciLayout(files: ArchiveFiles): Promise<ArchivedImage[]> {
  const { manifests } = await files.json(files.get('index.json'), OciIndex);
  const images: ArchivedImage[] = [];
  for (const descriptor of manifests) {
    // The outermost index lists separate images; a nested index lists the platforms of one image.
    const manifest = await manifestFor(files, descriptor, manifests.length === 1, 0);
    if (manifest === undefined) continue;
    const { config, layers } = manifest;
    const layerFiles = layers.map(({ digest }) => files.blob(digest));
    images.push({ ...(await imageOf(files, files.blob(config.digest), layerFiles)), names: namesOf(descriptor) });
  }
  if (images.length === 0) throw badArchive(`no image for linux/${goArchitecture()} found`);
  return images;
}

/** The manifest behind a descriptor; of several platforms the one of this machine. */
async function manifestFor(
  files: ArchiveFiles,
  descriptor: Descriptor,
  isOnly: boolean,
  depth: number,
): Promise<Static<typeof OciManifest> | undefined> {
  if (depth > INDEX_DEPTH) throw badArchive('too many nested indexes');
  if (!isOnly && !fitsHost(descriptor)) return undefined;
  const file = files.blob(descriptor.digest);
  if (!/index|manifest\.list/.test(descriptor.mediaType ?? '')) return await files.json(file, OciManifest);
  const { manifests } = await files.json(file, OciIndex);
  for (const inner of manifests) {
    // An archive of one platform still has the complete index, without the blobs of other platforms.
    if (!fitsHost(inner) || !files.has(`blobs/${inner.digest.replace(':', '/')}`)) continue;
    const found = await manifestFor(files, inner, true, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function fitsHost({ platform }: Descriptor): boolean {
  return !platform || (platform.os === 'linux' && platform.architecture === goArchitecture());
}

/** An annotation may be any text: one that is no name gives none. */
function namesOf({ annotations }: Descriptor): Reference[] {
  const name = NAME_ANNOTATIONS.map((key) => annotations?.[key]).find((text) => text !== undefined && text !== '');
  if (name === undefined) return [];
  try {
    return [parseRepoAndTag(name)];
  } catch (error) {
    if (error instanceof EngineError && error.kind === 'invalid') return [];
    throw error;
  }
}

async function imageOf(files: ArchiveFiles, config: ArchiveFile, layers: ArchiveFile[]): Promise<ArchivedImage> {
  const json = await files.text(config);
  const { diffIds } = parseImage(parseJson(json, config.path));
  if (diffIds.length !== layers.length) {
    throw badArchive(`invalid manifest, layers length mismatch: expected ${diffIds.length}, got ${layers.length}`);
  }
  return { id: sha256(json), json, diffIds, layers, names: [] };
}
