import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';

type Row = Readonly<{
  lines: readonly string[];
  flags?: readonly string[];
  /** A command in the result, and its output. */
  shows?: readonly [string, string];
  /** Settings of the result. */
  config?: Readonly<Record<string, unknown>>;
  /** Lines of its history. */
  history?: readonly string[];
  /** Lines of the progress. */
  progress?: readonly string[];
}>;

const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Files, and what dockerd 28.5's BuildKit makes of them where the classic builder does otherwise. */
const rows: readonly Row[] = [
  {
    lines: [
      'FROM busybox',
      'ENV A=1',
      'ARG A=2',
      'RUN echo $A > /o',
      'ENV A=3',
      'RUN echo $A >> /o',
      'ARG A=4',
      'RUN echo $A >> /o',
      'ENV B=$A',
    ],
    shows: ['cat /o', '2\n3\n4\n'],
    history: ['RUN |1 A=3 /bin/sh -c echo $A >> /o # buildkit', 'ENV B=4'],
    progress: ['RUN echo 2 > /o', 'RUN echo 4 >> /o'],
  },
  {
    lines: ['ARG X=busybox', 'FROM $X AS one', 'ARG X', 'FROM one', 'RUN echo "[$X]" > /o'],
    shows: ['cat /o', '[busybox]\n'],
    progress: ['[one 1/1] FROM docker.io/library/busybox:latest', '[stage-1 1/1] RUN echo "[busybox]" > /o'],
  },
  {
    lines: ['FROM busybox', 'USER 7:8', 'WORKDIR /w/x', 'WORKDIR ../y', 'USER nobody-knows', 'WORKDIR /z', 'USER 0'],
    shows: ['stat -c "%u:%g %n" /w /w/x /w/y /z', '7:8 /w\n7:8 /w/x\n7:8 /w/y\n0:0 /z\n'],
    config: { WorkingDir: '/z' },
  },
  {
    lines: [
      'FROM busybox AS a',
      'HEALTHCHECK --interval=5s CMD x',
      'FROM a',
      'HEALTHCHECK --timeout=2s --interval=0s --start-interval=3s CMD y z',
    ],
    config: { Healthcheck: { Test: ['CMD-SHELL', 'y z'], Timeout: 2_000_000_000, StartInterval: 3_000_000_000 } },
    history: [String.raw`HEALTHCHECK &{["CMD-SHELL" "y z"] "0s" "2s" "0s" "3s" '\x00'}`],
  },
  {
    lines: ['FROM busybox', 'ARG P=90', 'EXPOSE 80 53/UDP 8000-8001 $P/sctp'],
    history: ['EXPOSE [90/sctp 53/udp 80/tcp 8000/tcp 8001/tcp]'],
    config: { ExposedPorts: { '80/tcp': {}, '53/udp': {}, '8000/tcp': {}, '8001/tcp': {}, '90/sctp': {} } },
  },
  {
    lines: ['FROM scratch AS s', 'CMD ["/x"]', 'FROM s', 'COPY a /'],
    config: { WorkingDir: '/', Cmd: ['/x'], ArgsEscaped: true, Env: [PATH] },
    progress: ['[stage-1 1/1] COPY a /'],
  },
  {
    lines: ['FROM busybox', 'ARG TARGETSTAGE TARGETPLATFORM', 'RUN echo $TARGETSTAGE $TARGETPLATFORM > /o'],
    shows: ['cut -d/ -f1 /o', 'default linux\n'],
  },
  {
    lines: ['FROM busybox', 'RUN echo "$HTTP_PROXY $http_proxy $NO_PROXY" > /o'],
    flags: ['--build-arg', 'HTTP_PROXY=http://p', '--build-arg', 'no_proxy=q'],
    shows: ['cat /o', 'http://p http://p q\n'],
    history: ['RUN /bin/sh -c echo "$HTTP_PROXY $http_proxy $NO_PROXY" > /o # buildkit'],
  },
  {
    lines: ['FROM busybox', 'ADD --chown=3:4 x.tar /e/', 'ADD x.tar /f/', 'ADD --unpack=false x.tar /g/'],
    shows: ['stat -c "%u:%g %n" /e /e/in /f/in /g/x.tar', '3:4 /e\n3:4 /e/in\n5:6 /f/in\n0:0 /g/x.tar\n'],
  },
  {
    lines: [
      'FROM busybox AS b',
      'ONBUILD ARG Q=1',
      'ONBUILD RUN echo $Q > /q',
      'ONBUILD COPY <<EOF /h',
      'here $Q',
      'EOF',
      'FROM b',
      'RUN true',
    ],
    shows: ['cat /q /h', '1\nhere 1\n'],
    progress: [
      '[stage-1 1/4] ONBUILD RUN echo 1 > /q',
      '[stage-1 2/4] ONBUILD COPY <<EOF /h',
      '[stage-1 3/4] RUN true',
    ],
  },
  {
    lines: [
      'FROM busybox AS x',
      'RUN false',
      'FROM busybox AS a',
      'RUN echo 1 > /f',
      'FROM busybox AS a',
      'RUN echo 2 > /f',
      'FROM busybox',
      'COPY --from=a /f /',
    ],
    shows: ['cat /f', '2\n'],
  },
  {
    lines: [
      'FROM busybox AS st',
      'RUN mkdir /d && echo s > /d/f',
      'FROM busybox',
      'ARG T=/t',
      'RUN --mount=from=st,src=/d,target=$T cat /t/f > /o',
      'RUN --mount=type=cache,id=filled,from=st,source=/d,target=/c cat /c/f >> /o',
      'RUN --mount=type=cache,id=owned,target=/c,uid=5,gid=6,mode=0750 stat -c "%a %u %g" /c >> /o',
      'RUN --mount=type=cache,target=/ro,ro touch /ro/x || echo read-only >> /o',
      'RUN --mount=type=tmpfs,target=/m,size=64k dd if=/dev/zero of=/m/f bs=1k count=100 || echo full >> /o',
      'RUN --mount=target=ctx cat ctx/a >> /o',
      'RUN --network=none test -z "$(ip route)" && echo none >> /o',
    ],
    shows: ['cat /o', 's\ns\n750 5 6\nread-only\nfull\ncontent\nnone\n'],
  },
  {
    lines: [
      'FROM busybox',
      'RUN --mount=type=secret,id=s,env=S echo "[$S]" > /dev/tty 2>/dev/null; test "$S" = open-sesame && ! test -e /run/secrets/s',
      'RUN --mount=type=secret,id=s,target=/x/y,mode=0440,uid=7,gid=8 stat -c "%a %u %g" /x/y > /o',
      'RUN --mount=type=secret,src=s,env=S,target=/k test "$(cat /k)" = "$S"',
      'RUN --mount=type=secret,id=none,env=C test -z "$C"',
    ],
    flags: ['--secret', 'id=s,src=secret'],
    shows: ['cat /o', '440 7 8\n'],
    progress: ['echo "[****]"'],
  },
  {
    lines: ['FROM busybox', 'RUN mkdir /x && touch -d @1 /x', 'WORKDIR /x/y/z'],
    flags: ['--build-arg', 'SOURCE_DATE_EPOCH=1600000000'],
    shows: ['stat -c %Y /x/y /x/y/z', '1600000000\n1600000000\n'],
    config: { Created: '2020-09-13T12:26:40Z' },
  },
];

suite("BuildKit's semantics", { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
    await project.write({ secret: 'open-sesame' });
  });
  after(async () => {
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  for (const [index, { lines, flags = [], shows, config = {}, history = [], progress = [] }] of rows.entries()) {
    test(`${lines.join('; ').slice(0, 100)}: result`, async () => {
      const name = `row-${index}`;
      await project.write({ [`${name}/a`]: 'content\n' });
      await project.archive(`${name}/x.tar`, [{ name: 'in', content: 'x', uid: 5, gid: 6 }]);
      const { code, text } = await project.build(name, { Dockerfile: lines.join('\n') }, '--network=none', ...flags);

      assert.equal(code, 0, text);
      for (const line of progress) assert.ok(text.includes(line), `${line}\n${text}`);
      const { body } = await engine.get<{ Config: object; Created: string }>(`/images/${name}/json`);
      const told: Record<string, unknown> = { Created: body.Created, ...body.Config };
      assert.deepEqual(Object.fromEntries(Object.keys(config).map((key) => [key, told[key]])), config);
      const steps = (await engine.get<{ CreatedBy: string }[]>(`/images/${name}/history`)).body;
      for (const line of history)
        assert.ok(
          steps.some((step) => step.CreatedBy === line),
          `${line}\n${JSON.stringify(steps)}`,
        );
      if (shows === undefined) return;
      const [command, output] = shows;
      assert.equal((await project.docker(['run', '--rm', name, 'sh', '-c', command])).text, output);
    });
  }

  test('the network of the machine needs the permission of the client', async () => {
    const files = { Dockerfile: 'FROM busybox\nRUN --network=host true\n' };
    const refused = await project.build('host', files);
    assert.equal(refused.code, 1);
    assert.match(refused.text, /network\.host is not allowed/);
    const allowed = await project.build('host', files, '--allow', 'network.host');
    assert.equal(allowed.code, 0, allowed.text);
  });

  test('a base image that cannot be had is named', async () => {
    const { code, text } = await project.build('nobase', { Dockerfile: 'FROM nosuch.invalid/img:1\n' });

    assert.equal(code, 1);
    assert.match(text, /nosuch\.invalid\/img:1: failed to resolve source metadata for nosuch\.invalid\/img:1: /);
    assert.match(text, /\[internal\] load metadata for nosuch\.invalid\/img:1/);
  });

  test('a failed stage is told once, with its own words', async () => {
    const lines = ['FROM busybox AS a', 'RUN exit 4', 'FROM busybox', 'COPY --from=a /x /y'];
    const { text } = await project.build('fails', { Dockerfile: lines.join('\n') }, '--network=none');

    assert.match(text, /ERROR: (?:failed to build: )?failed to solve: process "\/bin\/sh -c exit 4" did not complete/);
    assert.equal(text.match(/^#\d+ ERROR/gm)?.length, 1, text);
    assert.match(text, /2 \| >>> RUN exit 4/);
  });
});
