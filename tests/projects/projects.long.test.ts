import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { debianBase, debianSource } from './debian.ts';

const execute = promisify(execFile);

/** Sources of Debian 12, by their digests. */
const SOURCES = {
  site: [
    'n/node-normalize.css/node-normalize.css_8.0.1.orig.tar.gz',
    '9d0f4a4113a66570c8f5dffce39c8a48c2e2ca5c60839a6cc1bd56dd513baf92',
  ],
  c: ['t/tree/tree_2.1.0.orig.tar.gz', '0160c535bff2b0dc6a830b9944e981e3427380f63e748da96ced7071faebabf6'],
  node: [
    'n/node-commander/node-commander_9.4.1.orig.tar.gz',
    '591ba7850546f51a710a776f9271f1401a08b0e2b831cbbc8354415273a9da12',
  ],
  python: ['d/docopt/docopt_0.6.2.orig.tar.gz', '2113eed1e7fbbcd43fb7ee6a977fb02d0b482753586c9dc1a8e3b7d541426e99'],
} as const;

/** Real projects, built and run by docker's command line. What they need is fetched once: `./gantry test tests/projects`. */
suite('projects of Debian on our daemon', { concurrency: false }, () => {
  let engine: TestEngine;
  const env = (): Record<string, string | undefined> => ({
    PATH: process.env.PATH,
    DOCKER_API_VERSION: '1.24',
    DOCKER_BUILDKIT: '0',
    DOCKER_HOST: `unix://${engine.socketPath}`,
    DOCKER_CONFIG: join(engine.directory, 'docker-config'),
  });
  const docker = async (...words: string[]): Promise<string> =>
    (await execute('docker', words, { env: env(), maxBuffer: 2 ** 26 })).stdout;

  before(async () => {
    engine = await TestEngine.start({ image: false });
    await docker('import', await debianBase(), 'debian:base');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** Builds it twice: the second time every step is known. */
  async function built(project: keyof typeof SOURCES, files: Readonly<Record<string, string>>): Promise<string> {
    const folder = join(engine.directory, project);
    mkdirSync(folder);
    const [path, digest] = SOURCES[project];
    writeFileSync(join(folder, 'source.tar.gz'), await debianSource(path, digest));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    const first = await docker('build', '-t', `${project}:1`, folder);
    assert.match(first, /Successfully tagged/);
    const second = await docker('build', '-t', `${project}:2`, folder);
    const steps = second.match(/^Step \d+\/\d+ : /gm)!.length;
    assert.equal(second.match(/^ ---> Using cache$/gm)!.length, steps - second.match(/^Step .* : FROM /gm)!.length);
    return `${project}:1`;
  }

  test('a site behind nginx is served, inside and on its published port', async () => {
    const image = await built('site', {
      Dockerfile: [
        'FROM debian:base',
        'ADD source.tar.gz /tmp/',
        'RUN rm /var/www/html/* && cp /tmp/normalize*/test.html /tmp/normalize*/*.css /var/www/html/ \\',
        '    && ln -sf /dev/stdout /var/log/nginx/access.log && nginx -t',
        'EXPOSE 80',
        'STOPSIGNAL SIGQUIT',
        'HEALTHCHECK --interval=1s CMD test -s /run/nginx.pid',
        'CMD ["nginx", "-g", "daemon off;"]',
      ].join('\n'),
    });
    const id = (await docker('run', '-d', '-p', '8080:80', image)).trim();
    const inside = [
      'python3',
      '-c',
      "import urllib.request as r; print(r.urlopen('http://localhost/test.html').read())",
    ];
    let page = '';
    for (const deadline = Date.now() + 60_000; page === '' && Date.now() < deadline; await setTimeout(100)) {
      page = await docker('exec', id, ...inside).catch(() => '');
    }
    assert.match(page, /Normalize CSS: UI tests/);
    const port = ['-c', "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8080/normalize.css').read())"];
    assert.match(await engine.onHost(['/usr/bin/python3', ...port]), /normalize\.css v8\.0\.1/);
    assert.match(await docker('logs', id), /GET \/normalize\.css/);
    await docker('stop', id);
    assert.equal((await docker('inspect', '-f', '{{.State.ExitCode}}', id)).trim(), '0');
  });

  test('a program in C is compiled in one stage and alone in the next', async () => {
    const image = await built('c', {
      Dockerfile: [
        'FROM debian:base AS compiler',
        'ADD source.tar.gz /src/',
        'ARG JOBS=2',
        'RUN make -C /src/tree-2.1.0 -j$JOBS LDFLAGS=-static',
        'FROM scratch',
        'COPY --from=compiler /src/tree-2.1.0/tree /bin/tree',
        'ENTRYPOINT ["/bin/tree"]',
        'CMD ["--version"]',
      ].join('\n'),
    });

    assert.match(await docker('run', '--rm', image), /^tree v2\.1\.0/);
    assert.match(await docker('run', '--rm', '--network=none', image, '-L', '1', '/bin'), /tree\n/);
    assert.equal((await docker('history', '-q', image)).trim().split('\n').length, 3);
  });

  test('a program for Node has its package installed by npm', async () => {
    const image = await built('node', {
      'package.json':
        '{"name":"app","version":"1.0.0","private":true,"dependencies":{"commander":"file:source.tar.gz"}}',
      'app.js':
        "const { program } = require('commander');\nprogram.option('--name <name>').parse();\nconsole.log(`hello ${program.opts().name}`);\n",
      '.dockerignore': '*\n!package.json\n!app.js\n!source.tar.gz\n',
      Dockerfile: [
        'FROM debian:base',
        'WORKDIR /app',
        'COPY package.json source.tar.gz ./',
        'RUN npm install --offline --no-audit --no-fund --no-update-notifier',
        'COPY app.js .',
        'USER www-data',
        'ENTRYPOINT ["node", "app.js"]',
      ].join('\n'),
    });

    assert.equal(await docker('run', '--rm', image, '--name', 'there'), 'hello there\n');
  });

  test('a program in Python runs with its library, as a user', async () => {
    const image = await built('python', {
      'app.py':
        '"""Usage: app.py [--times=N] <word>"""\nimport docopt, os\na = docopt.docopt(__doc__)\nprint(os.getuid(), " ".join([a["<word>"]] * int(a["--times"] or 1)))\n',
      Dockerfile: [
        'FROM debian:base',
        'ADD source.tar.gz /usr/src/',
        'RUN cp /usr/src/docopt-*/docopt.py /usr/lib/python3/dist-packages/ && rm -r /usr/src/docopt-* \\',
        '    && python3 -m compileall -q /usr/lib/python3/dist-packages/docopt.py && useradd -u 1234 runner',
        'COPY --chown=runner app.py /home/runner/',
        'USER runner',
        'WORKDIR /home/runner',
        'ENTRYPOINT ["python3", "app.py"]',
      ].join('\n'),
    });

    assert.equal(await docker('run', '--rm', image, '--times=3', 'ja'), '1234 ja ja ja\n');
  });
});
