/**
 * Command lines that both command lines must answer alike: code and output. `DIFFERENT` has the deliberate differences.
 */
export const ALIKE: readonly (readonly string[])[] = [
  ...lists('ps', [
    ['-a', '-q'],
    ['-a', '--no-trunc', '-q'],
    ['-n', '2', '-q'],
    ['-lq'],
    ['-a', '-q', '--format', '{{.Names}}'],
    ['-a', '-q', '--format', 'table'],
    [
      '-a',
      '--format',
      '{{.Names}} {{.Image}} {{.Command}} {{.State}} {{.Ports}} {{.Labels}} {{.Mounts}} {{.Networks}}',
    ],
    ['-a', '-s', '--format', 'table {{.Names}}\\t{{.Size}}\\t{{.Label "tier"}}'],
    [
      '-a',
      '--format',
      '{{upper .Names}} {{title .Names}} {{len .Names}} {{pad .Names 1 2}}| {{join (split .Names "e") "/"}}',
    ],
    [
      '-a',
      '--format',
      '{{html "<a>"}} {{js "it\'s"}} {{urlquery "a b"}} {{print 1 2 .Names}} {{printf "%q %9s" .Names .State}}',
    ],
    ['-a', '--format', '{{if eq .State "running"}}up{{else}}down{{end}} {{with .Labels}}{{.}}{{end}}'],
  ]),
  ...filters('ps', [
    ...['name=we', 'name=^web$', 'label=tier', 'label=tier=front', 'exited=3', 'status=running', 'status=created'],
    ...['ancestor=busybox', 'ancestor=nosuch', 'before=done', 'since=done', 'volume=pages', 'volume=/data'],
    ...['network=back', 'network=bridge', 'publish=8080', 'expose=99', 'health=none', 'is-task=true', 'id=nosuch'],
    ...['status=nonsense', 'nope=1'],
  ]),
  ...lists('images', [
    ['--digests', '--no-trunc'],
    ['-q', '--format', 'table'],
    ['-q', '--format', 'x{{.ID}}'],
    [
      '--format',
      '{{.Repository}}:{{.Tag}} {{.ID}} {{.Digest}} {{.Size}} {{.VirtualSize}} {{.SharedSize}} {{.CreatedAt}}',
    ],
    ['busybox:latest', '-q'],
    ['nosuch'],
  ]),
  ...filters('images', ['dangling=true', 'dangling=false', 'reference=b*', 'label=a', 'nope=1', 'dangling=maybe']),
  ...lists('network ls', [
    ['--no-trunc'],
    ['--format', '{{.ID}} {{.Name}} {{.Scope}} {{.IPv6}} {{.Internal}} {{.Labels}} {{.CreatedAt}}'],
    ['--format', 'table {{.Name}}\\t{{.Label "tier"}}'],
    ['-q', '--format', 'table'],
  ]),
  ...filters('network ls', ['driver=bridge', 'type=custom', 'name=ac', 'label=tier=low', 'scope=local', 'nope=1']),
  ...lists('volume ls', [
    [],
    [
      '--format',
      '{{.Name}} {{.Mountpoint}} {{.Links}} {{.Size}} {{.Availability}} {{.Status}} {{.Group}} {{.Label "tier"}}',
    ],
  ]),
  ...filters('volume ls', ['dangling=true', 'name=pa', 'label=tier', 'driver=local', 'nope=1']),
  ...filters('events --since 1h --until 0s', [
    ...[
      'container=done',
      'event=create',
      'type=network',
      'image=busybox',
      'label=tier=front',
      'volume=pages',
      'nope=1',
    ],
  ]),
  ...lists('events --since 1h --until 0s --filter container=done', [
    ['--format', 'json'],
    ['--format', '{{json .}}'],
    [
      '--format',
      '{{.Type}} {{.Action}} {{.ID}} {{.From}} {{.Status}} {{.Time}} {{.TimeNano}} {{.Scope}} {{.Actor.ID}}',
    ],
  ]),
  ...lists('inspect', [
    ['web'],
    ['--format', 'json', 'web', 'done'],
    ['-f', '{{json .State}} {{.State.ExitCode}} {{index .Config.Labels "tier"}}', 'web'],
    ['-f', '{{(index (index .NetworkSettings.Ports "80/tcp") 0).HostPort}}', 'web'],
    ['-f', '{{.Name}}', 'web', 'nosuch'],
    ['--type', 'container', 'busybox'],
    ['--type', 'image', 'busybox', '-f', '{{.RepoTags}}'],
  ]),
  ...lists('network inspect', [['-v', 'back'], ['nosuch']]),
  ...lists('volume inspect', [['pages'], ['nosuch']]),
  ...lists('logs', [
    ...[
      ['done'],
      ['-t', 'done'],
      ['--tail', '1', 'done'],
      ['--since', '10m', 'done'],
      ['--details', 'done'],
      ['nosuch'],
    ],
    ['--since', '2030-01-01T00:00:00Z', 'done'],
  ]),
  ...lists('history', [
    ['--no-trunc', 'busybox'],
    ['-q', '--format', 'table', 'busybox'],
    ['-H=false', 'busybox'],
    ['nosuch'],
  ]),
  ...lists('stats --no-stream', [['--format', '{{.Name}} {{.Container}} {{.ID}}', 'web', 'second'], ['nosuch']]),
  ...lists('top', [['web', '-o', 'pid,comm'], ['done'], ['nosuch']]),
  ...lists('port', [['web'], ['web', '80'], ['web', '77'], ['done'], ['nosuch']]),
  ...lists('exec', [
    ['web', 'sh', '-c', 'exit 42'],
    ['web', 'nosuch'],
    ['web', '/etc'],
    ['done', 'true'],
    ['nosuch', 'true'],
  ]),
  ...lists('run --rm', [
    ...[
      ['busybox', 'sh', '-c', 'echo said; exit 7'],
      ['busybox', 'nosuch'],
      ['busybox', '/etc'],
      ['-m', '1m', 'busybox'],
    ],
    ...['pid', 'uts', 'userns', 'ipc', 'network'].map((name) => [`--${name}`, 'nonsense', 'busybox', 'true']),
  ]),
  ...lists('info', [['-f', '{{.Driver}} {{.NCPU}} {{.OSType}} {{.Containers}}']]),
  ...lists('version', [
    ['-f', '{{.Client.APIVersion}} {{.Client.Arch}} {{.Server.Version}} {{.Server.MinAPIVersion}}'],
  ]),
  ...lists('', [
    ...[
      ['diff', 'web'],
      ['rm', '-f', 'nosuch'],
      ['rm', 'nosuch'],
      ['rmi', 'nosuch'],
      ['load', '-i', '/nonexistent'],
    ],
    ...[
      ['start', 'nosuch'],
      ['kill', 'done'],
      ['pause', 'done'],
      ['wait', 'done'],
      ['network', 'rm', 'nosuch'],
    ],
    ...[
      ['create', 'nosuch.invalid/x'],
      ['push', 'nosuch'],
      ['tag', 'nosuch', 'x'],
      ['volume', 'rm', 'pages'],
    ],
    ...[['--nosuch'], ['ps', '--nosuch'], ['ps', '-n', 'x'], ['ps', '--all=maybe'], ['-H', 'tcp://127.0.0.1:1', 'ps']],
  ]),
];

/** The deliberate differences: the reason, and the code of each side. */
export const DIFFERENT: readonly { line: readonly string[]; why: string; theirs: number; ours: number }[] = [
  ...[['ps', 'x'], ['inspect'], ['pz'], ['volume', 'lst'], ['help', 'nosuch'], ['ps', '--format', '{{.Names']].map(
    (line) => ({ line, why: 'one code for all lines that cannot be read', theirs: 1, ours: 125 }),
  ),
  ...[
    ['logs', '--until', '2030-01-01', 'done'],
    ['exec', '-e', 'A=b', '-w', '/tmp', 'web', 'true'],
    ['run', '--rm', '--init', 'busybox', 'true'],
    ['plugin', 'ls'],
    ['volume', 'rm', '-f', 'nosuch'],
  ].map((line) => ({ line, why: 'docker sends it to newer engines only', theirs: 1, ours: 0 })),
  {
    line: ['ps', '-a', '--format', '{{slice .ID 0 3}}'],
    why: 'docker tries templates on the titles first, which are shorter',
    theirs: 1,
    ours: 0,
  },
  {
    line: ['ps', '--format', '{{.Platform}}'],
    why: 'version 1.24 of the API does not tell it (docker: <nil>)',
    theirs: 0,
    ours: 125,
  },
  {
    line: ['network', 'ls', '--format', '{{.IPv4}}'],
    why: 'version 1.24 of the API does not tell it (docker: false, which is wrong)',
    theirs: 0,
    ours: 125,
  },
  {
    line: ['run', '--rm', '--device', '/dev/nosuch', 'busybox', 'true'],
    why: 'not the program is missing',
    theirs: 127,
    ours: 125,
  },
  { line: ['-D', 'ps'], why: 'the client has no log and no contexts', theirs: 0, ours: 125 },
];

function lists(command: string, endings: readonly (readonly string[])[]): string[][] {
  const words = command === '' ? [] : command.split(' ');
  return endings.map((ending) => [...words, ...ending]);
}

function filters(command: string, texts: readonly string[]): string[][] {
  const all = command === 'ps' ? ['-a'] : [];
  const quiet = command.startsWith('events') ? [] : ['-q'];
  return texts.map((text) => [...command.split(' '), ...all, ...quiet, '--filter', text]);
}
