import { Type } from 'typebox';

import { badArchive } from '../../layers/tar/tar-header.ts';
import { EngineError } from '../../lib/errors.ts';
import { fitsPlatform, platformText, type Platform } from '../configuration/platform.ts';
import { parseRepoAndTag } from '../names/reference.ts';
import type { ArchiveFiles } from './archive-files.ts';
import { imageOf, type ArchivedImage } from './archived-image.ts';
import { readLegacyImages } from './legacy-archive.ts';
import { hasIndex, readOciLayout } from './oci-layout.ts';

const Nullable = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const Manifests = Type.Array(
  Type.Object({
    Config: Type.String(),
    RepoTags: Nullable(Type.Array(Type.String())),
    Layers: Nullable(Type.Array(Type.String())),
    Parent: Nullable(Type.String()),
  }),
);

/**
 * The images of an archive in any of three formats; an archive with two formats has the same images in both, but only one
 * tells several platforms. Throws `notFound` if none is of the wanted platforms; without any all count.
 */
export async function readImages(files: ArchiveFiles, platforms: readonly Platform[] = []): Promise<ArchivedImage[]> {
  const images = await readFormat(files, platforms);
  if (platforms.length === 0) return images;
  const wanted = images.filter(({ platform }) => platforms.some((each) => fitsPlatform(each, platform)));
  if (wanted.length > 0) return wanted;
  const text = platforms.map(platformText).join(', ');
  throw new EngineError('notFound', `the archive does not provide the requested platform (${text})`);
}

async function readFormat(files: ArchiveFiles, platforms: readonly Platform[]): Promise<ArchivedImage[]> {
  if (await hasIndex(files)) return await readOciLayout(files, platforms);
  if (files.has('manifest.json')) return await readDockerArchive(files);
  if (files.has('index.json')) return await readOciLayout(files, platforms);
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
