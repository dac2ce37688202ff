import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

import { Type } from 'typebox';

import { sha256 } from '../../layers/chain-id.ts';
import { badArchive } from '../../layers/tar/tar-header.ts';
import { compressionOf, decompressed } from '../../layers/threads/compression.ts';
import { OldSettings, oldHistoryEntry, writeOldConfiguration } from '../configuration/old-configuration.ts';
import type { Platform } from '../configuration/platform.ts';
import { parseRepoAndTag } from '../names/reference.ts';
import { parseJson, type ArchiveFile, type ArchiveFiles } from './archive-files.ts';
import type { ArchivedImage } from './archived-image.ts';

const Repositories = Type.Record(Type.String(), Type.Record(Type.String(), Type.String()));

const LayerJson = Type.Intersect([
  Type.Object({ id: Type.String(), parent: Type.Optional(Type.String()) }),
  OldSettings,
]);

/**
 * The oldest format: a folder per layer with `json` and `layer.tar`, and `repositories` with the names. Each layer is
 * an image, parents first. Its configuration is written here byte for byte as other engines write it, so that the ids
 * agree.
 */
export async function readLegacyImages(files: ArchiveFiles): Promise<ArchivedImage[]> {
  const images = new Map<string, ArchivedImage>();
  for (const path of files.names()) {
    const [, folder] = /^([^/]+)\/json$/.exec(path) ?? [];
    if (folder !== undefined) await addImage(files, folder, images, []);
  }
  if (!files.has('repositories')) return [...images.values()];
  const repositories = await files.json(files.get('repositories'), Repositories);
  for (const [repository, tags] of Object.entries(repositories)) {
    for (const [tag, folder] of Object.entries(tags)) {
      const image = images.get(folder);
      if (image === undefined) throw badArchive(`repositories names ${JSON.stringify(folder)}, which is missing`);
      image.names.push(parseRepoAndTag(repository, tag));
    }
  }
  return [...images.values()];
}

async function addImage(
  files: ArchiveFiles,
  folder: string,
  images: Map<string, ArchivedImage>,
  above: readonly string[],
): Promise<ArchivedImage> {
  const known = images.get(folder);
  if (known !== undefined) return known;
  if (above.includes(folder)) throw badArchive(`the layer ${JSON.stringify(folder)} is its own parent`);
  const jsonFile = files.get(`${folder}/json`);
  const layer = await files.json(jsonFile, LayerJson);
  const parent =
    layer.parent === undefined || layer.parent === ''
      ? undefined
      : await addImage(files, layer.parent, images, [...above, folder]);

  const archive = files.get(`${folder}/layer.tar`);
  const diffIds = [...(parent?.diffIds ?? []), await diffIdOf(archive)];
  const history = [...(parent === undefined ? [] : historyOf(parent)), oldHistoryEntry(layer)];
  const fields = parseJson(await files.text(jsonFile), jsonFile.path) as Record<string, unknown>;
  const json = writeOldConfiguration(fields, diffIds, history);
  const image: ArchivedImage = {
    id: sha256(json),
    json,
    platform: platformIn(json),
    diffIds,
    layers: [...(parent?.layers ?? []), archive],
    names: [],
    ...(parent && { parentId: parent.id }),
  };
  images.set(folder, image);
  return image;
}

function platformIn(json: string): Platform {
  const { os = '', architecture = '', variant = '' } = JSON.parse(json) as Partial<Platform>;
  return { os, architecture, variant };
}

function historyOf({ json }: ArchivedImage): unknown[] {
  return (JSON.parse(json) as { history: unknown[] }).history;
}

/** This format records no digest, and the layer may be compressed. */
async function diffIdOf(file: ArchiveFile): Promise<string> {
  if ((await compressionOf(file.file)) === 'none') return file.digest;
  const hash = createHash('sha256');
  await pipeline(decompressed(createReadStream(file.file)), hash);
  return `sha256:${hash.digest('hex')}`;
}
