import { created, mounts, output, type Json, type LaterRow, type LaterSide } from './later-fields.ts';

/** Fills the volume `parts` once for each engine. */
const FILL = [
  'mkdir -p /v/a/b /v/c /v/new; echo in > /v/a/b/file; echo top > /v/file',
  'ln -sfn a/b /v/inside; ln -sfn /a /v/absolute; ln -sfn ../../../../../etc /v/up; ln -sfn loop /v/loop',
].join('; ');

async function part(side: LaterSide, Subpath: string, script: string, more: Json = {}): Promise<unknown> {
  await output(side, FILL, { HostConfig: { Binds: ['parts:/v'] } });
  return await output(side, script, mounts({ Type: 'volume', Source: 'parts', VolumeOptions: { Subpath }, ...more }));
}

const SEE = '[ -d /m ] && ls /m || cat /m';
const volume = (Subpath: string, expected: unknown, chosen?: string): LaterRow => ({
  title: `Subpath ${JSON.stringify(Subpath)} of a volume`,
  work: async (side) => {
    const seen = (await part(side, Subpath, SEE)) as [number, string];
    return typeof seen[0] === 'number' ? [seen[0], seen[1].replace(/ \/.*?_data/, ' <volume>')] : seen;
  },
  expected: { '1.51': expected },
  ...(chosen !== undefined && { chosen }),
});

const refusedPart = (Type: string): [number, string] => [
  400,
  `invalid mount config for type "${Type}": subpath must be a relative path within the volume`,
];
const missing = (name: string): [number, string] => [
  404,
  `cannot access path <volume>/${name}: no such file or directory`,
];

const image = (title: string, more: Json, script: string, expected: unknown, chosen?: string): LaterRow => ({
  title: `a mount of an image: ${title}`,
  work: async (side) => await output(side, script, mounts({ Type: 'image', Source: 'busybox', ...more })),
  expected: { '1.51': expected },
  ...(chosen !== undefined && { chosen }),
});

export const LATER_MOUNTS: readonly LaterRow[] = [
  volume('a', ['b']),
  volume('a/b', ['file']),
  volume('a//b/', ['file']),
  volume('a/../a', ['b']),
  volume('.', ['a', 'absolute', 'c', 'file', 'inside', 'loop', 'new', 'up']),
  volume('file', ['top']),
  volume('inside', ['file']),
  volume('/a', refusedPart('volume')),
  volume('..', refusedPart('volume')),
  volume('a/../../x', refusedPart('volume')),
  volume('absolute', ['b'], 'an absolute link leads into the volume'),
  volume('up', missing('up'), 'the reason has other words'),
  volume('none', missing('none'), 'the reason has other words'),
  volume('loop', [400, 'cannot access path <volume>/loop: too many links'], 'dockerd answers 500'),
  volume('file/x', [400, 'cannot access path <volume>/file/x: not a directory'], 'dockerd answers 500'),
  {
    title: 'a read-only Subpath',
    work: async (side) => await part(side, 'a', 'touch /m/x', { ReadOnly: true }),
    expected: { '1.51': ['touch: /m/x: Read-only file system'] },
  },
  {
    title: 'an empty Subpath is filled from the image',
    work: async (side) => {
      await output(side, FILL, { HostConfig: { Binds: ['parts:/v'] } });
      const filled = { ...mounts({ Type: 'volume', Source: 'parts', VolumeOptions: { Subpath: 'new' } }) };
      const { HostConfig } = filled as { HostConfig: { Mounts: Json[] } };
      const body = { HostConfig: { Mounts: HostConfig.Mounts.map((mount) => ({ ...mount, Target: '/etc' })) } };
      const seen = await output(side, 'ls /etc/passwd; rm -r /etc/*; ls /etc', body);
      return (seen as string[])[0];
    },
    expected: { '1.51': '/etc/passwd' },
  },
  {
    title: 'Subpath of an anonymous volume',
    work: async (side) => await created(side, mounts({ Type: 'volume', VolumeOptions: { Subpath: 'a' } })),
    expected: {
      '1.51': [400, 'invalid mount config for type "volume": must not set Subpath when using anonymous volumes'],
    },
  },
  {
    title: 'a Subpath that turns into a link to the host while containers start',
    work: async (side) => {
      const swap = 'while :; do mkdir /v/x; rmdir /v/x; ln -s / /v/x; ln -sfn /proc/1/root /v/x; rm /v/x; done';
      const { body: made } = await side.api.post<{ Id: string }>('/containers/create', {
        Image: 'busybox',
        Cmd: ['sh', '-c', `${swap} 2>/dev/null`],
        HostConfig: { Binds: ['swapped:/v'] },
      });
      await side.api.post(`/containers/${made.Id}/start`);
      const body = mounts({ Type: 'volume', Source: 'swapped', VolumeOptions: { Subpath: 'x', NoCopy: true } });
      const seen: unknown[] = [];
      for (let turn = 0; turn < 15; turn += 1) seen.push(await output(side, 'ls -d /m/proc /m/root /m/etc', body));
      await side.api.delete(`/containers/${made.Id}?force=1`);
      // It is an empty folder, the volume itself, or an error of the start.
      return seen.filter((one) => JSON.stringify(one).includes('"/m/'));
    },
    expected: { '1.55': [] },
    chosen: 'not sent to dockerd',
  },
  image('the whole', {}, 'ls -d /m/bin; touch /m/x; grep " /m " /proc/mounts | cut -d" " -f3', [
    '/m/bin',
    'overlay',
    'touch: /m/x: Read-only file system',
  ]),
  image('a folder', { ImageOptions: { Subpath: 'etc' } }, 'ls /m/passwd', ['/m/passwd']),
  image('a file', { ImageOptions: { Subpath: 'etc/passwd' } }, 'head -c 5 /m', ['root:']),
  image('a path that climbs out', { ImageOptions: { Subpath: '../x' } }, 'true', refusedPart('image')),
  image('a missing image', { Source: 'nowhere' }, 'true', [404, 'No such image: nowhere:latest']),
  image('no source', { Source: '' }, 'true', [
    400,
    'invalid mount config for type "image": field Source must not be empty',
  ]),
  image('at the root', { Target: '/' }, 'true', [
    400,
    "invalid mount config for type \"image\": invalid specification: destination can't be '/'",
  ]),
  {
    title: 'a mount of an image: a missing path',
    work: async (side) => {
      const body = mounts({ Type: 'image', Source: 'busybox', ImageOptions: { Subpath: 'none' } });
      const [status, message] = (await output(side, 'true', body)) as [number, string];
      return [status, message.replace(/path (\S*\/)?none: (lstat .*: )?/, 'path none: ')];
    },
    expected: { '1.51': [404, 'cannot access path none: no such file or directory'] },
  },
  {
    title: 'a mount of an image: as shown, and its image stays',
    work: async (side) => {
      const { api } = side;
      const { body: base } = await api.post<{ Id: string }>('/containers/create', { Image: 'busybox', Cmd: ['true'] });
      await api.post(`/commit?container=${base.Id}&repo=lent`);
      await api.delete(`/containers/${base.Id}`);
      const body = mounts({ Type: 'image', Source: 'lent' });
      const { body: user } = await api.post<{ Id: string }>('/containers/create', {
        Image: 'busybox',
        Cmd: ['ls', '/m/bin/sh'],
        ...body,
      });
      const { body: shown } = await api.get<{ Mounts: Json[] }>(`/containers/${user.Id}/json`);
      const removals = [await api.delete('/images/lent'), await api.delete('/images/lent?force=1')];
      const started = await api.post(`/containers/${user.Id}/start`);
      await api.post(`/containers/${user.Id}/wait`);
      const { body: ended } = await api.get<{ State: Json }>(`/containers/${user.Id}/json`);
      await api.delete(`/containers/${user.Id}`);
      await api.delete('/images/lent');
      const { Source: _place, ...mount } = shown.Mounts[0]!;
      return [mount, removals.map(({ status }) => status), started.status, ended.State.ExitCode];
    },
    expected: {
      '1.55': [
        { Type: 'image', Name: 'lent', Destination: '/m', Mode: '', RW: false, Propagation: 'rprivate' },
        [409, 200],
        204,
        0,
      ],
    },
    chosen: 'by force the name alone is removed: the image stays as long as its mount',
  },
];
