import { Type, type Static } from 'typebox';

const text = (description: string) => Type.Optional(Type.String({ description }));
const flag = (description: string) => Type.Optional(Type.Boolean({ description }));
const number = (description: string) => Type.Optional(Type.Integer({ description }));
/** A limit that dockerd leaves out if the value is empty in any notation. */
const limit = (description: string) => Type.Optional(Type.Union([Type.Integer(), Type.Null()], { description }));
const texts = (description: string) =>
  Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())], { description }));

export const BuildQuery = Type.Object({
  buildfile: text('Path of the instruction file in the context'),
  dockerfile: text("The same under docker's name"),
  t: texts('Name of the image, with or without a tag; may be repeated'),
  remote: text('A Git repository, or a text or archive of a web server, as the context'),
  q: flag('Only the id of the image'),
  nocache: flag('Do not use the cache'),
  pull: flag('Pull images even if they are there'),
  rm: flag('Remove the containers of steps after a success; the default is true'),
  forcerm: flag('Remove them also after a failure'),
  memory: limit('Bytes, of each step'),
  memswap: limit('Bytes; -1: unlimited swap'),
  cpushares: limit('Of each step'),
  cpusetcpus: text('Such as `0-3`'),
  cpusetmems: text('Such as `0`'),
  cpuperiod: limit('Microseconds'),
  cpuquota: limit('Microseconds'),
  shmsize: number('Bytes of /dev/shm'),
  buildargs: text('JSON map of names to texts'),
  labels: text('JSON map of names to texts'),
  target: text('The last stage to build: its name or number'),
  platform: text('Platform of base images, such as linux/arm64'),
  networkmode: text('Of each step'),
  cachefrom: text('JSON list of images whose history serves as a cache'),
  cgroupparent: text('Of each step'),
  extrahosts: texts('`name:address`; may be repeated'),
  ulimits: text('JSON list'),
  securityopt: texts('Refused'),
  squash: flag('Refused'),
  version: text('`1`: this builder'),
  outputs: text('Refused: outputs other than an image need BuildKit'),
  buildid: text('A name for `POST /build/cancel`'),
});
export type BuildQuery = Static<typeof BuildQuery>;

export const CancelBuildQuery = Type.Object({ id: text('`buildid` of a build') });

const bytes = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }));

export const PruneCachesQuery = Type.Object({
  'keep-storage': bytes('Older name of reserved-space'),
  'reserved-space': bytes('Bytes that may always stay'),
  'max-used-space': bytes('Bytes that may stay if there is enough free space'),
  'min-free-space': bytes('Free bytes of the disk that are aimed at'),
  all: Type.Optional(Type.Boolean({ description: 'Without effect: there are no caches of the builder itself' })),
  filters: Type.Optional(Type.String({ description: 'JSON map: until, unused-for, id, type, inuse, shared, private' })),
});

export const PrunedCaches = Type.Object({
  CachesDeleted: Type.Union([Type.Array(Type.String()), Type.Null()]),
  SpaceReclaimed: Type.Integer(),
});
