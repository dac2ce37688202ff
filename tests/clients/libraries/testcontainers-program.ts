/**
 * A program with testcontainers. It runs in the network namespace of the daemon's published ports, and prints one JSON
 * object with a result per scenario. It finds the engine by its environment.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { GenericContainer, Network, Wait, type StartedTestContainer } from 'testcontainers';

const SERVE = 'echo served >/tmp/index.html; echo serving; exec httpd -f -p 80 -h /tmp';

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  'waits for a line of the log': async () => {
    await using container = await shell('sleep 0.2; echo one ready; echo one ready; exec sleep 1000', (made) =>
      made.withWaitStrategy(Wait.forLogMessage(/one ready/, 2)),
    );
    void container;
    return 'ready';
  },
  'waits for ports': async () => {
    await using container = await shell(SERVE, (made) =>
      made.withExposedPorts(80).withWaitStrategy(Wait.forListeningPorts()),
    );
    return await fetched(container);
  },
  'waits for an answer': async () => {
    await using container = await shell(SERVE, (made) =>
      made.withExposedPorts(80).withWaitStrategy(Wait.forHttp('/index.html', 80).forStatusCode(200)),
    );
    return await fetched(container);
  },
  'waits for health': async () => {
    await using container = await shell('sleep 0.3; touch /tmp/well; exec sleep 1000', (made) =>
      made
        .withHealthCheck({ test: ['CMD-SHELL', 'test -e /tmp/well'], interval: 200, timeout: 30_000, retries: 1000 })
        .withWaitStrategy(Wait.forHealthCheck()),
    );
    return (await container.exec(['test', '-e', '/tmp/well'])).exitCode;
  },
  'waits for a command': async () => {
    await using container = await shell('sleep 0.2; touch /tmp/done; exec sleep 1000', (made) =>
      made.withWaitStrategy(Wait.forSuccessfulCommand('test -e /tmp/done')),
    );
    return (await container.exec('test -e /tmp/done')).exitCode;
  },
  'waits for an end': async () => {
    await using container = await shell('echo once', (made) => made.withWaitStrategy(Wait.forOneShotStartup()));
    return (await text(await container.logs())).trim();
  },
  'copies in before the start and while it runs': async () => {
    using folder = folderOf({ 'from-file': 'of a file' });
    await using container = await shell('exec sleep 1000', (made) =>
      made
        .withCopyContentToContainer([{ content: 'of a text', target: '/tmp/before', mode: 0o640 }])
        .withCopyFilesToContainer([{ source: join(folder.path, 'from-file'), target: '/tmp/file' }])
        .withCopyDirectoriesToContainer([{ source: folder.path, target: '/tmp/folder' }]),
    );
    await container.copyContentToContainer([{ content: 'later', target: '/tmp/after' }]);
    const script = 'cd /tmp; stat -c %a before; cat before file folder/from-file after';
    return (await container.exec(['sh', '-c', script])).output;
  },
  'copies out, running and stopped': async () => {
    const container = await shell('echo made >/tmp/made; echo ready; exec sleep 1000', (made) =>
      made.withWaitStrategy(Wait.forLogMessage('ready')),
    );
    const running = await contentOf(await container.copyArchiveFromContainer('/tmp/made'));
    const stopped = await container.stop({ remove: false, timeout: 0 });
    const after = await contentOf(await stopped.copyArchiveFromContainer('/tmp/made'));
    return { running, after };
  },
  'runs commands: output, code, environment, user, folder': async () => {
    await using container = await shell('exec sleep 1000', (made) => made.withEnvironment({ A: 'of the container' }));
    const { output, stdout, stderr, exitCode } = await container.exec(
      ['sh', '-c', 'echo $A $B; id -un; pwd; echo wrong >&2; exit 6'],
      { env: { B: 'of the command' }, user: 'daemon', workingDir: '/tmp' },
    );
    return { words: output.split('\n').toSorted(), stdout, stderr, exitCode };
  },
  'restarts, and ports are found again': async () => {
    await using container = await shell(SERVE, (made) =>
      made.withExposedPorts(80).withWaitStrategy(Wait.forListeningPorts()),
    );
    const before = await fetched(container);
    await container.restart({ timeout: 0 });
    return [before, await fetched(container)];
  },
  'hears the log while it is written': async () => {
    const heard = Promise.withResolvers<string>();
    await using container = await shell('echo first; sleep 0.1; echo second; exec sleep 1000', (made) =>
      made.withLogConsumer((stream) => {
        let said = '';
        stream.on('data', (chunk: Buffer) => {
          said += chunk.toString();
          if (said.includes('second')) heard.resolve(said);
        });
      }),
    );
    void container;
    return (await heard.promise).split('\n').filter(Boolean);
  },
  'two in a network know each other by alias': async () => {
    await using network = await new Network().start();
    await using server = await shell(SERVE, (made) =>
      made
        .withNetwork(network)
        .withNetworkAliases('server')
        .withExposedPorts(80)
        .withWaitStrategy(Wait.forListeningPorts()),
    );
    void server;
    await using client = await shell('exec sleep 1000', (made) => made.withNetwork(network));
    return (await client.exec(['wget', '-qO-', 'http://server/index.html'])).output;
  },
  'aliases are those of one network, also after a restart': async () => {
    await using near = await new Network().start();
    await using far = await new Network().start();
    await using server = await shell(SERVE, (made) =>
      made
        .withNetwork(near)
        .withNetworkAliases('server', 'second.name')
        .withExposedPorts(80)
        .withWaitStrategy(Wait.forListeningPorts()),
    );
    await using client = await shell('exec sleep 1000', (made) => made.withNetwork(near).withNetworkAliases('client'));
    await using stranger = await shell('exec sleep 1000', (made) => made.withNetwork(far));
    const pages = async (): Promise<string[]> =>
      await Promise.all(
        ['server', 'second.name', server.getId().slice(0, 12)].map(
          async (name) => (await client.exec(['wget', '-qO-', `http://${name}/index.html`])).output,
        ),
      );
    const before = await pages();
    await server.restart({ timeout: 0 });
    const { exitCode } = await stranger.exec(['ping', '-c', '1', '-w', '1', 'server']);
    const { output } = await client.exec(['ping', '-c', '1', '-w', '60', 'client']);
    return [before, await pages(), exitCode, /1 packets received/.test(output)];
  },
  'limits, tmpfs, labels, a name of its host': async () => {
    await using container = await shell('exec sleep 1000', (made) =>
      made
        .withResourcesQuota({ memory: 0.125, cpu: 1 })
        .withTmpFs({ '/scratch': 'rw,size=65536k' })
        .withLabels({ kind: 'limited' })
        .withHostname('named'),
    );
    const script = 'hostname; df -k /scratch | tail -n 1 | awk "{print \\$2}"';
    return [
      (await container.exec(['sh', '-c', script])).output,
      container.getLabels()['kind'],
      container.getHostname(),
    ];
  },
  'says that a container ended instead of becoming ready': async () => {
    try {
      await using container = await shell('echo no; exit 3', (made) =>
        made.withWaitStrategy(Wait.forLogMessage('yes')).withStartupTimeout(120_000),
      );
      return container.getId();
    } catch (error) {
      return String(error).replaceAll(/[0-9a-f]{64}/g, '<id>');
    }
  },
};

async function shell(
  script: string,
  more: (container: GenericContainer) => GenericContainer,
): Promise<StartedTestContainer> {
  const made = new GenericContainer('busybox').withCommand(['sh', '-c', script]).withStartupTimeout(120_000);
  return await more(made).start();
}

async function fetched(container: StartedTestContainer): Promise<string> {
  const answer = await fetch(`http://${container.getHost()}:${container.getMappedPort(80)}/index.html`);
  return await answer.text();
}

async function contentOf(archive: NodeJS.ReadableStream): Promise<string[]> {
  return [...tarList(await buffer(archive)).values()].map(({ path, content }) => `${path}: ${content.toString()}`);
}

function folderOf(files: Readonly<Record<string, string>>): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'testcontainers-folder-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

// testcontainers lets its log streams go unheeded: they keep no program alive.
const alive = setInterval(() => undefined, 1000);
const results: Record<string, unknown> = {};
for (const [name, scenario] of Object.entries(scenarios)) {
  results[name] = await scenario().catch((error: unknown) => `failed: ${String(error)}`);
}
process.stdout.write(`\n${JSON.stringify(results)}\n`);
clearInterval(alive);
