import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';

import { BothEngines, COMMAND_LINES, docker, normalised, type Side } from '../both-engines.ts';
import { differences } from '../differences.ts';
import { KNOWN_PROJECTS, type KnownProject } from './known-projects.ts';
import { projectState } from './project-state.ts';

const execute = promisify(execFile);
const PROGRAMS =
  'tini nginx redis-server postgres apache2-foreground python gunicorn node nodemon bundle docker-entrypoint.sh'.split(
    ' ',
  );
/** The commands that list and stop know nothing of a project's kind: one project shows them. */
const LISTED = 'voting';
const CHECKS = ['curl', 'pg_isready', 'python3'];

/** In place of every shell: records the command of a RUN with its surroundings, succeeds, and stays where it is no RUN. */
const SHELL = `#!/bin/busybox sh
case " $* " in
*" -c "*)
  { busybox id -u; busybox id -g; busybox pwd; busybox printf '<%s>\\n' "$@"; busybox env | busybox grep -v ^HOSTNAME= | busybox sort; } >> /ran
  exit 0 ;;
esac
exec /bin/stay
`;
const STAY = "#!/bin/busybox sh\ntrap 'exit 0' TERM INT QUIT\nbusybox sleep 100000 & wait\n";
const SUCCEED = '#!/bin/busybox sh\nexit 0\n';

type Compared = Readonly<Record<string, unknown>>;
type Image = { Config: object; RootFS: { Layers: string[] } };

/** The whole files of ten well-known projects, in our words, built and run on our daemon and on dockerd. */
suite('well-known projects', { concurrency: false, timeout: 1_200_000 }, () => {
  let engines: BothEngines;
  const folder = mkdtempSync(join(tmpdir(), 'gantry-known-'));
  before(async () => {
    engines = await BothEngines.start();
    for (const project of KNOWN_PROJECTS) writeProject(project);
    await engines.both(async ({ api }) => await api.post('/images/load?quiet=1', standIns()));
  });
  after(async () => {
    await engines[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  for (const project of KNOWN_PROJECTS) {
    test(`${project.name}: ${project.builds === undefined ? 'compose' : 'docker build'} has dockerd's results`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await results(side, project));

      assert.deepEqual(differences(ours, theirs), []);
    });
  }

  function writeProject({ name, files }: KnownProject): void {
    for (const [path, content] of Object.entries(files)) {
      const file = join(folder, name, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content, { mode: content.startsWith('#!') ? 0o755 : 0o644 });
    }
  }

  async function results(side: Side, { name, builds = {}, compose }: KnownProject): Promise<Compared> {
    const built: Record<string, unknown> = {};
    for (const [place, pairs] of Object.entries(builds)) {
      const tag = ['known', name, ...(place === '.' ? [] : [place])].join('-');
      const words = ['build', '-t', tag, ...pairs.flatMap((pair) => ['--build-arg', pair]), join(folder, name, place)];
      for (const program of COMMAND_LINES) {
        const { code, stderr } = await docker(side, words, program);
        assert.equal(code, 0, `${side.name}: ${stderr}`);
      }
      built[tag] = await imageState(side, tag);
    }
    return { built, ...(compose !== undefined && (await composed(side, name, compose))) };
  }

  async function composed(side: Side, name: string, files: readonly string[]): Promise<Compared> {
    const run = async (...words: string[]): Promise<string> => {
      const env = {
        PATH: process.env.PATH,
        HOME: side.directory,
        DOCKER_HOST: `unix://${side.socketPath}`,
        COMPOSE_API_VERSION: '1.24',
        COMPOSE_DOCKER_CLI_BUILD: '0',
      };
      const flags = ['--no-ansi', ...files.flatMap((file) => ['-f', file]), '-p', name];
      return (await execute('docker-compose', [...flags, ...words], { cwd: join(folder, name), env })).stdout;
    };
    await run('up', '-d');
    const up = await projectState(side);
    const later = name === LISTED ? await listed(up.ids) : {};
    await run('down', '-v', '-t', '0');
    const { containers, networks, volumes } = await projectState(side);
    return { up: { ...up, ids: '' }, ...later, left: { containers, networks, volumes } };

    async function listed(ids: unknown): Promise<Compared> {
      const images = (await run('images', '-q')).trim().split('\n').length;
      await run('up', '-d');
      const again = (await projectState(side)).ids === ids;
      const services = (await run('ps', '--services')).trim().split('\n').toSorted();
      await run('stop', '-t', '0');
      return { images, again, services, stopped: (await projectState(side)).containers };
    }
  }
});

/** One image under the names of all bases: a container of it runs until it is stopped, whatever its command. */
function standIns(): Buffer {
  const tar = new TarWriter();
  tar.add({ name: 'ran', mode: 0o666, content: '' });
  for (const name of ['sh', 'bash']) tar.add({ name: `bin/${name}`, mode: 0o755, content: SHELL });
  tar.add({ name: 'bin/stay', mode: 0o755, content: STAY });
  for (const name of ['usr/local/', 'usr/local/bin/']) tar.add({ name, type: 'directory', mode: 0o755 });
  for (const name of PROGRAMS) tar.add({ name: `usr/local/bin/${name}`, mode: 0o755, content: STAY });
  tar.add({ name: 'usr/bin/tini', mode: 0o755, content: STAY });
  for (const name of CHECKS) tar.add({ name: `usr/local/bin/${name}`, mode: 0o755, content: SUCCEED });
  tar.add({
    name: 'etc/passwd',
    content: 'root:x:0:0::/root:/bin/sh\njenkins:x:1000:1000::/:\nwww-data:x:33:33::/:\n',
  });
  tar.add({ name: 'etc/group', content: 'root:x:0:\njenkins:x:1000:\nwww-data:x:33:\n' });
  const names = KNOWN_PROJECTS.flatMap(({ bases }) => bases).map((base) =>
    base.includes(':') ? base : `${base}:latest`,
  );
  return imageArchive([busyboxLayer(), tar.end()], [...new Set(names)], {
    Entrypoint: ['/bin/stay'],
    Cmd: ['default'],
    Volumes: { '/var/lib/of-the-base': {} },
    ExposedPorts: { '1234/tcp': {} },
    Labels: { base: 'stand-in' },
  });
}

/** The configuration and the history of an image, and the commands that its RUN steps got. */
async function imageState(side: Side, tag: string): Promise<Compared> {
  const { body } = await side.api.get<Image>(`/images/${tag}/json`);
  const { body: history } = await side.api.get<{ CreatedBy: string; Size: number }[]>(`/images/${tag}/history`);
  const ran = await docker(side, ['run', '--rm', '--net=none', '-u=0', '--entrypoint=busybox', tag, 'cat', '/ran']);
  return {
    config: { ...body.Config, Image: '' },
    layers: body.RootFS.Layers.length,
    history: history.map(({ CreatedBy, Size }) => [normalised(side, CreatedBy), Size]),
    ran: ran.stdout,
  };
}
