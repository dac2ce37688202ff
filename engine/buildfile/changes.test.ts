import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EMPTY_CONFIG, type RunConfig } from '../records/run-config.ts';
import { applyChanges } from './changes.ts';

const understood: readonly (readonly [changes: string, config: Partial<RunConfig>])[] = [
  ['CMD ["sh", "-c", "a b"]', { Cmd: ['sh', '-c', 'a b'] }],
  ['cmd echo "hi there" $X', { Cmd: ['/bin/sh', '-c', 'echo "hi there" $X'] }],
  ['CMD [not json]', { Cmd: ['/bin/sh', '-c', '[not json]'] }],
  ['ENTRYPOINT ["/init"]', { Entrypoint: ['/init'] }],
  ['ENTRYPOINT a b', { Entrypoint: ['/bin/sh', '-c', 'a b'] }],
  ['ENV A=b C="d e" F=g\\ h', { Env: ['A=b', 'C=d e', 'F=g h'] }],
  ['ENV A the rest', { Env: ['A=the rest'] }],
  ['ENV A=1\nENV A=2 B=$A', { Env: ['A=2', 'B=1'] }],
  [
    'ENV A=x\nENV B=\'$A\' C="${A}y" D=${N:-none} E=${A:+set} F=\\$A',
    { Env: ['A=x', 'B=$A', 'C=xy', 'D=none', 'E=set', 'F=$A'] },
  ],
  [
    'ENV P=/a/b.c.d E=\nENV A=${P#*/} B=${P##*/} C=${P%.*} D=${P%%.*} F=${P/b/x} G=${N-none} H=${E-none} I=${E+set}',
    {
      Env: ['P=/a/b.c.d', 'E=', 'A=a/b.c.d', 'B=b.c.d', 'C=/a/b.c', 'D=/a/b', 'F=/a/x.c.d', 'G=none', 'H=', 'I=set'],
    },
  ],
  [
    'EXPOSE 80 443/tcp 53/udp 8000-8002',
    { ExposedPorts: { '80/tcp': {}, '443/tcp': {}, '53/udp': {}, '8000/tcp': {}, '8001/tcp': {}, '8002/tcp': {} } },
  ],
  ['LABEL a=b "c d"="e f"', { Labels: { a: 'b', 'c d': 'e f' } }],
  ['LABEL a the rest', { Labels: { a: 'the rest' } }],
  ['USER bob:staff', { User: 'bob:staff' }],
  ['VOLUME /a /b', { Volumes: { '/a': {}, '/b': {} } }],
  ['VOLUME ["/a b"]', { Volumes: { '/a b': {} } }],
  ['WORKDIR /a\nWORKDIR b', { WorkingDir: '/a/b' }],
  ['STOPSIGNAL SIGUSR1', { StopSignal: 'SIGUSR1' }],
  ['ONBUILD RUN make\nONBUILD COPY . /src', { OnBuild: ['RUN make', 'COPY . /src'] }],
  [
    'HEALTHCHECK --interval=1m30s --timeout=500ms --retries=3 CMD ["/check"]',
    { Healthcheck: { Test: ['CMD', '/check'], Interval: 90e9, Timeout: 5e8, Retries: 3 } },
  ],
  [
    'HEALTHCHECK --start-period=2s CMD curl -f x',
    { Healthcheck: { Test: ['CMD-SHELL', 'curl -f x'], StartPeriod: 2e9 } },
  ],
  ['CMD', { Cmd: ['/bin/sh', '-c'] }],
  ['USER a b', { User: 'a b' }],
  ['HEALTHCHECK NONE', { Healthcheck: { Test: ['NONE'] } }],
  ['CMD a \\\n b\n\n# a remark\nUSER u', { Cmd: ['/bin/sh', '-c', 'a  b'], User: 'u' }],
];

for (const [changes, config] of understood) {
  test(`${JSON.stringify(changes)} changes the settings of an image`, () => {
    const changed = applyChanges([changes], EMPTY_CONFIG);

    for (const [key, value] of Object.entries(config)) assert.deepEqual(changed[key as keyof RunConfig], value);
  });
}

const refused: readonly (readonly [changes: string, message: RegExp])[] = [
  ['RUN x', /^run is not a valid change command$/],
  ['constructor x', /constructor is not a valid change command/],
  ['ENV A', /must have two arguments/],
  ['ENV A=b C', /can't find = in "C"/],
  ['ENV =b', /names can not be blank/],
  ['ENV A="b', /looking for matching double-quote/],
  ['EXPOSE http', /Invalid containerPort: http/],
  ['EXPOSE 90000', /Invalid containerPort/],
  ['EXPOSE 80-70', /Invalid containerPort/],
  ['USER', /USER requires exactly one argument/],
  ['ONBUILD FROM x', /isn't allowed as an ONBUILD trigger/],
  ['HEALTHCHECK --interval=1us CMD x', /Interval "interval" cannot be less than 1ms/],
  ['HEALTHCHECK --interval=soon CMD x', /invalid duration "soon"/],
  ['HEALTHCHECK --what=1 CMD x', /Unknown flag/],
  ['HEALTHCHECK x', /Unknown type "X"/],
  ['HEALTHCHECK CMD', /Missing command/],
];

for (const [changes, message] of refused) {
  test(`${JSON.stringify(changes)} is refused`, () => {
    assert.throws(() => applyChanges([changes], EMPTY_CONFIG), { kind: 'invalid', message });
  });
}

test('changes build on the settings that were there', () => {
  const base = applyChanges(['ENV A=1\nLABEL a=b\nCMD ["x"]'], EMPTY_CONFIG);

  const changed = applyChanges(['ENV B=$A', 'LABEL c=d'], base);

  assert.deepEqual(changed.Env, ['A=1', 'B=1']);
  assert.deepEqual(changed.Labels, { a: 'b', c: 'd' });
  assert.deepEqual(changed.Cmd, ['x']);
});
