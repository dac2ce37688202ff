import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { TarWriter } from './archives/tar-writer.ts';

const BUSYBOX = '/bin/busybox';

let archive: Promise<Buffer> | undefined;

/**
 * A docker-archive with the image `busybox:latest`: Debian's static busybox with a link for each of its applets, and
 * the few files that programs look for. Made once per process, with the same bytes each time.
 */
export async function busyboxArchive(): Promise<Buffer> {
  archive ??= Promise.resolve(imageArchive(busyboxLayer(), ['busybox:latest'], { Cmd: ['sh'] }));
  return await archive;
}

/** The root file system alone, as an import takes it. */
export function busyboxLayer(): Buffer {
  const tar = new TarWriter();
  for (const name of ['bin', 'dev', 'etc', 'home', 'proc', 'root', 'sys', 'usr', 'usr/bin', 'var', 'var/spool']) {
    tar.add({ name: `${name}/`, type: 'directory', mode: name === 'root' ? 0o700 : 0o755 });
  }
  tar.add({ name: 'tmp/', type: 'directory', mode: 0o1777 });
  tar.add({ name: 'bin/busybox', mode: 0o755, content: readFileSync(BUSYBOX) });
  const applets = execFileSync(BUSYBOX, ['--list'], { encoding: 'utf8' }).trim().split('\n');
  for (const applet of applets.filter((name) => name !== 'busybox')) {
    tar.add({ name: `bin/${applet}`, type: 'link', mode: 0o755, linkName: 'bin/busybox' });
  }
  tar.add({ name: 'usr/bin/env', type: 'symlink', linkName: '../../bin/env' });
  tar.add({
    name: 'etc/passwd',
    content:
      'root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nnobody:x:65534:65534:nobody:/home:/bin/false\n',
  });
  tar.add({ name: 'etc/group', content: 'root:x:0:\ndaemon:x:1:\nwheel:x:10:root\nnogroup:x:65534:\n' });
  tar.add({ name: 'etc/shadow', mode: 0o640, content: 'root:*:::::::\nnobody:*:::::::\n' });
  return tar.end();
}

/** A docker-archive (with manifest.json) of one image: `layers` are tars, base first. */
export function imageArchive(layers: Buffer | readonly Buffer[], tags: readonly string[], config: object = {}): Buffer {
  const all = Buffer.isBuffer(layers) ? [layers] : layers;
  const json = JSON.stringify({
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    created: '2024-01-01T00:00:00Z',
    config: { Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'], ...config },
    rootfs: { type: 'layers', diff_ids: all.map((layer) => `sha256:${sha256(layer)}`) },
    history: all.map((_, index) => ({ created: '2024-01-01T00:00:00Z', created_by: `layer ${index}` })),
  });
  const configName = `${sha256(json)}.json`;
  const tar = new TarWriter();
  const names = all.map((layer) => `${sha256(layer)}/layer.tar`);
  // A layer that occurs twice in one image is one file in its archive.
  for (const [index, layer] of all.entries()) {
    if (names.indexOf(names[index]!) === index) tar.add({ name: names[index]!, content: layer });
  }
  tar.add({ name: configName, content: json });
  tar.add({
    name: 'manifest.json',
    content: JSON.stringify([{ Config: configName, RepoTags: tags, Layers: names }]),
  });
  return tar.end();
}

function sha256(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('hex');
}
