import { open, rename, rm, stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import * as images from '@gantry/client/images.ts';

import { command, MANY } from '../command-line/command.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { reasonOf } from '../failures.ts';
import { visible } from '../output/escape.ts';
import { PLATFORM, platformJson, PLATFORMS } from './platform-flag.ts';

/** `gantry load`. */
export const load = command({
  words: '',
  count: [0, 0],
  flags: {
    input: { kind: 'text', short: 'i', value: 'FILE', help: 'The archive (default: stdin)', offers: 'file' },
    platform: PLATFORMS,
    quiet: { kind: 'boolean', short: 'q', help: 'No progress' },
  },
  about: 'Archives of docker save, OCI layouts; plain, or compressed with gzip, zstd, xz or bzip2.',
  examples: ['gantry load -i busybox.tar', 'docker save busybox | gantry load'],
  run: async ({ connection }, _words, { input, platform, quiet }) => {
    const platforms = platform.map(platformJson);
    const archive = await archiveOf(input);
    await images.loadImages(connection, archive, { quiet, platform: platforms }, (line) => console.log(visible(line)));
  },
});

/** `gantry import`. */
export const importCommand = command({
  words: 'FILE|URL|- [NAME[:TAG]]',
  count: [1, 2],
  flags: {
    change: {
      kind: 'list',
      short: 'c',
      value: 'INSTRUCTION',
      help: 'An instruction for the image, such as CMD ["sh"]',
    },
    message: { kind: 'text', short: 'm', help: 'A comment' },
    platform: { ...PLATFORM, help: "The image's platform; default: the engine's" },
  },
  offers: 'file',
  examples: [`tar -C rootfs -c . | gantry import -c 'CMD ["sh"]' - mine:1`],
  run: async ({ connection }, [source = '', name = ''], { change, message = '', platform }) => {
    const options = { name, changes: change, message, platform };
    const isUrl = /^https?:\/\//.test(source);
    const from = isUrl ? source : await archiveOf(source === '-' ? undefined : source);
    console.log(visible(await images.importImage(connection, from, options)));
  },
});

/** `gantry save`. */
export const save = command({
  words: 'IMAGE [IMAGE...]',
  count: [1, MANY],
  flags: {
    output: { kind: 'text', short: 'o', value: 'FILE', help: 'Where to (default: stdout)', offers: 'file' },
    platform: PLATFORMS,
  },
  offers: 'image',
  examples: ['gantry save -o busybox.tar busybox', 'gantry save busybox | gzip > busybox.tar.gz'],
  run: async ({ connection }, names, { output, platform }) => {
    if (output === undefined && process.stdout.isTTY) {
      throw new UsageError('refusing to write an archive to a terminal: use -o or redirect');
    }
    const archive = await images.saveImages(connection, names, platform.map(platformJson));
    if (output === undefined) await pipeline(archive, process.stdout, { end: false });
    else await writeWhole(output, archive);
  },
});

/** Opens the file before the request, so that a missing file is reported first. */
async function archiveOf(file: string | undefined): Promise<Readable> {
  if (file === undefined) {
    if (process.stdin.isTTY) throw new UsageError('stdin is a terminal, not an archive: use -i or redirect');
    return process.stdin;
  }
  const handle = await open(file).catch(cannotOpen(file));
  if ((await handle.stat()).isDirectory()) {
    await handle.close();
    throw new Exit(EXIT.failed, `cannot open ${file}: it is a folder, not an archive`);
  }
  return handle.createReadStream();
}

/**
 * Writes beside and renames, so that an incomplete archive never has the name. A device or a pipe is written directly.
 */
export async function writeWhole(file: string, archive: Readable): Promise<void> {
  const there = await stat(file).catch(() => undefined);
  const inPlace = there !== undefined && !there.isFile();
  const beside = inPlace ? file : `${file}.part-${process.pid}`;
  const handle = await open(beside, 'w').catch(cannotOpen(file));
  try {
    await pipeline(archive, handle.createWriteStream());
    if (!inPlace) await rename(beside, file);
  } catch (error) {
    if (!inPlace) await rm(beside, { force: true });
    throw error;
  }
}

function cannotOpen(file: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    const reason = error.code === 'ENOENT' ? 'no such file or folder' : reasonOf(error);
    throw new Exit(EXIT.failed, `cannot open ${file}: ${reason}`);
  };
}
