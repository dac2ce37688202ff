import { constants, lstatSync, closeSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Engine } from '../../engine.ts';
import { familiarReference } from '../../images/names/reference.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { sha256 } from '../../registry/digest.ts';
import { DOCKER_LAYER, writeManifest } from '../../registry/manifests.ts';
import { layerFile, pluginFolder, ROOTFS } from '../places.ts';
import { parsePluginConfig } from '../plugin-config.ts';
import { Arrival } from './arrival.ts';
import { pluginReference } from './download.ts';
import { holdPluginName } from './pull.ts';
import { configDescriptor } from './push.ts';

type Needs = Pick<Engine, 'archives' | 'clock' | 'config' | 'db' | 'events' | 'installedPlugins' | 'locks'>;

const CONFIG_BYTES = 8 * 1024 * 1024;

/**
 * Makes a disabled plugin of an archive with `config.json` and the folder `rootfs`. Throws `invalid` for a malformed name and for
 * another archive, and `conflict` for an existing plugin; nothing is left then, nor when `signal` ends it.
 */
export async function createPlugin(
  engine: Needs,
  asked: string,
  archive: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const { archives, clock, config, db, events, installedPlugins } = engine;
  const name = familiarReference(pluginReference(asked));
  using _lock = await holdPluginName(engine, name);
  await using arrival = new Arrival(engine);
  const { id, folder, plugin, root } = arrival;
  const [spool, files] = [join(folder, 'archive'), join(folder, 'files')];
  await archives.spoolContext(archive, { file: spool }, () => undefined, signal);
  mkdirSync(files, { mode: 0o700 });
  await archives.extractContext(spool, files, { signal });
  await rm(spool);
  const text = readConfig(join(files, 'config.json'));
  checkConfig(text);
  if (lstatSync(join(files, ROOTFS), { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new EngineError('invalid', 'the archive has no folder rootfs');
  renameSync(join(files, ROOTFS), root);

  const [plain, compressed] = [join(folder, 'layer'), join(folder, 'layer.gz')];
  await archives.packLayer(root, [], plain, 'none', signal);
  const { digest, sizeBytes } = await archives.compress({ kind: 'whole', file: plain }, compressed, () => undefined);
  renameSync(compressed, layerFile(plugin, digest));
  const layers = [{ digest, sizeBytes }];
  const manifest = writeManifest(configDescriptor(text), [{ mediaType: DOCKER_LAYER, digest, size: sizeBytes }]);
  db.transaction(() => {
    const installedAt = clock.now();
    installedPlugins.insert({
      id,
      name,
      digest: sha256(manifest),
      installedAt,
      config: text,
      isEnabled: false,
      layers,
    });
    events.emit('plugin', 'create', id, { name });
    renameSync(plugin, pluginFolder(config, id)); // last: it cannot be rolled back
  });
}

function checkConfig(text: string): void {
  try {
    parsePluginConfig(text);
  } catch (error) {
    throw error instanceof EngineError ? new EngineError('invalid', error.message, { cause: error }) : error;
  }
}

/** A plain file, and not through a link: it was in an archive of a client. */
function readConfig(path: string): string {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.size > CONFIG_BYTES)
      throw new EngineError('invalid', `config.json is no file of at most ${CONFIG_BYTES} bytes`);
    return readFileSync(fd, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ELOOP'))
      throw new EngineError('invalid', 'the archive has no file config.json', { cause: error });
    throw error;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
