import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';

import type { Connection } from '@gantry/client/connection.ts';
import * as images from '@gantry/client/images.ts';

import { command, type Flags, type Given } from '../command-line/command.ts';
import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { visible } from '../output/escape.ts';
import { allLogins } from '../registry/docker-config.ts';
import { packContext } from './context.ts';
import { secretsHeader } from './secrets.ts';

const flags = {
  tag: { kind: 'list', short: 't', value: 'NAME[:TAG]', help: 'A name of the image' },
  file: {
    kind: 'text',
    short: 'f',
    value: 'PATH',
    help: 'The Buildfile, in the context (default: Buildfile, Dockerfile)',
  },
  'build-arg': {
    kind: 'list',
    value: 'NAME[=VALUE]',
    help: 'A value for an ARG; without one, that of the environment',
  },
  label: { kind: 'list', value: 'NAME[=VALUE]', help: 'A label of the image' },
  target: { kind: 'text', value: 'STAGE', help: 'The last stage to build' },
  'no-cache': { kind: 'boolean', help: 'Do not use the cache' },
  'cache-from': { kind: 'list', value: 'IMAGE', help: 'Use only this image as a cache' },
  pull: { kind: 'boolean', help: 'Pull images even if they exist here' },
  quiet: { kind: 'boolean', short: 'q', help: 'Only the id of the image' },
  'keep-containers': { kind: 'boolean', help: 'Keep the containers of steps' },
  'force-rm': { kind: 'boolean', help: 'Remove also the containers of failed steps' },
  network: { kind: 'text', value: 'MODE', help: 'The network of each step' },
  memory: { kind: 'bytes', short: 'm', help: 'The memory of each step' },
  'shm-size': { kind: 'bytes', help: 'The size of /dev/shm in each step' },
  'cpu-shares': { kind: 'integer', short: 'c', help: 'The share of the processors' },
  'cpuset-cpus': { kind: 'text', value: 'LIST', help: 'The processors of each step' },
  secret: { kind: 'list', value: 'id=ID[,src=FILE|,env=NAME]', help: 'A file for RUN --mount=type=secret' },
  'add-host': { kind: 'list', value: 'NAME:ADDRESS', help: 'A line of /etc/hosts' },
} as const satisfies Flags;

/** `gantry build`. */
export const build = command({
  words: 'FOLDER|URL|-',
  count: [1, 1],
  flags,
  offers: 'file',
  about:
    'The context is a folder, a Git repository, an archive or Buildfile of a web server, or an archive on stdin. Files named by its .buildignore or .dockerignore are left out.',
  examples: [
    'gantry build -t mine:1 .',
    'gantry build https://example.com/repository.git#main:folder',
    'gantry build - < context.tar',
  ],
  run: async ({ connection }, [source = ''], given) => {
    const isRemote = /^(?:https?|git):\/\/|^github\.com\//.test(source);
    const query = queryOf(given, isRemote ? source : undefined);
    const secrets = await secretsHeader(given.secret);
    const headers = { 'Content-Type': 'application/x-tar', ...(await allLogins()), ...secrets };
    if (isRemote) return await follow(connection, { query, headers });
    if (source === '-') {
      if (process.stdin.isTTY) throw new UsageError('stdin is a terminal, not an archive: redirect');
      return await follow(connection, { query, headers, body: process.stdin });
    }
    if (!(await stat(source).catch(() => undefined))?.isDirectory()) {
      throw new Exit(EXIT.failed, `cannot build from ${source}: it is not a folder`);
    }
    const { stream, ended } = await packContext(source, given.file);
    await Promise.all([ended, follow(connection, { query, headers, body: stream })]);
  },
});

type Sent = Readonly<{
  query: Record<string, string | number | boolean | readonly string[] | undefined>;
  headers: Record<string, string>;
  body?: Readable;
}>;

async function follow(connection: Connection, sent: Sent): Promise<void> {
  await images.buildImage(connection, sent, (text) => process.stdout.write(visibleText(text)));
}

/** Removes a terminal's control sequences, except for colours and ends of lines. */
function visibleText(text: string): string {
  return process.stdout.isTTY ? text : text.split('\n').map(visible).join('\n');
}

function queryOf(given: Given<typeof flags>, remote: string | undefined): Sent['query'] {
  return {
    remote,
    t: given.tag,
    dockerfile: given.file,
    buildargs: JSON.stringify(Object.fromEntries(given['build-arg'].map(argumentOf))),
    labels: JSON.stringify(Object.fromEntries(given.label.map((written) => pair(written, '')))),
    target: given.target,
    nocache: given['no-cache'],
    cachefrom: given['cache-from'].length > 0 ? JSON.stringify(given['cache-from']) : undefined,
    pull: given.pull,
    q: given.quiet,
    rm: !given['keep-containers'],
    forcerm: given['force-rm'],
    networkmode: given.network,
    memory: given.memory,
    shmsize: given['shm-size'],
    cpushares: given['cpu-shares'],
    cpusetcpus: given['cpuset-cpus'],
    extrahosts: given['add-host'],
  };
}

function argumentOf(written: string): [string, string | null] {
  return pair(written, process.env[written] ?? null);
}

function pair<T>(written: string, missing: T): [string, string | T] {
  const equals = written.indexOf('=');
  return equals < 0 ? [written, missing] : [written.slice(0, equals), written.slice(equals + 1)];
}
