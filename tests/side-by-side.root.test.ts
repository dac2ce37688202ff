import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { becomeTestHost, HOST_IP, OUTSIDE_IP } from '@gantry/testing/networks/network-host.ts';
import { Peer } from '@gantry/testing/networks/peer.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** A container of one of the daemons, with somebody in its network namespace who serves on TCP port 80 and UDP 53. */
type Place = { name: string; ipAddress: string; peer: Peer };
type Daemon = { name: string; port: number; web: Place; other: Place; end: () => Promise<void> };

// One machine for all of them: a network namespace with a neighbour outside.
const machine = becomeTestHost();
const netns = `/proc/${process.pid}/fd/${machine.host}`;
const host = new Peer(machine.host);
const outside = new Peer(machine.outside);

suite('dockerd and two daemons on one machine', { concurrency: false }, () => {
  const daemons: Daemon[] = [];
  let first: TestEngine;
  let ofDockerd: string;
  before(async () => {
    await outside.serveTcp(9090, 'internet');
    // dockerd sets the policy to DROP only where it finds forwarding off, and a new namespace may have it on.
    writeFileSync('/proc/sys/net/ipv4/ip_forward', '0');
    const dockerd = await Dockerd.start(['--bip=172.29.0.1/16'], netns);
    ofDockerd = run('iptables', '-S');
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
    daemons.push(await daemon('dockerd', dockerd.api, 8080, dockerd));
    first = await TestEngine.start({ flags: ['--bridge=first0', '--bip=172.27.0.1/16'], netns });
    daemons.push(await daemon('first', first, 8081, first));
    const second = await TestEngine.start({ flags: ['--bridge=second0', '--bip=172.28.0.1/16'], netns });
    daemons.push(await daemon('second', second, 8082, second));
  });
  after(async () => {
    for (const { end } of daemons) await end();
    await host[Symbol.asyncDispose]();
    await outside[Symbol.asyncDispose]();
  });

  async function daemon(name: string, api: Api, port: number, process: AsyncDisposable): Promise<Daemon> {
    await using parts = new AsyncDisposableStack();
    parts.use(process);
    const bindings = { '80/tcp': [{ HostPort: `${port}` }], '53/udp': [{ HostPort: `${port}` }] };
    const web = parts.use(await place(api, `${name}-web`, { PortBindings: bindings }));
    const other = parts.use(await place(api, `${name}-other`));
    const kept = parts.move();
    return { name, port, web, other, end: async () => await kept.disposeAsync() };
  }

  /** Checks a working daemon's traffic: its own containers, the host, the others' containers, the world. */
  async function checkTraffic(those: readonly Daemon[]): Promise<void> {
    for (const { name, port, web, other } of those) {
      const strangers = those.filter((one) => one.name !== name).map((one) => one.other);
      const told = {
        neighbour: await other.peer.tcp(web.ipAddress, 80),
        loopback: named(await host.tcp('127.0.0.1', port)),
        hostAddress: named(await host.tcp(HOST_IP, port)),
        outside: named(await outside.tcp(HOST_IP, port)),
        udp: named(await outside.udp(HOST_IP, port)),
        itself: named(await web.peer.tcp(HOST_IP, port)),
        neighbourByHost: named(await other.peer.tcp(HOST_IP, port)),
        strangers: await Promise.all(strangers.map(async ({ peer }) => named(await peer.tcp(HOST_IP, port)))),
        internet: await web.peer.tcp(OUTSIDE_IP, 9090),
      };
      assert.deepEqual(
        { name, ...told },
        {
          name,
          neighbour: `${web.name} sees ${other.ipAddress}`,
          loopback: web.name,
          hostAddress: web.name,
          outside: web.name,
          udp: web.name,
          itself: web.name,
          neighbourByHost: web.name,
          strangers: strangers.map(() => web.name),
          internet: `internet sees ${HOST_IP}`,
        },
      );
    }
  }

  test('packets of each get through, though the policy of FORWARD is DROP', async () => {
    assert.match(run('iptables', '-S', 'FORWARD'), /^-P FORWARD DROP/);

    await checkTraffic(daemons);
  });

  test('unpublished ports are closed to outside and to the other bridges of ours', async () => {
    const [, { other: mine }, { other: theirs }] = daemons as [Daemon, Daemon, Daemon];
    const route = ['ip', 'route', 'replace', `${mine.ipAddress}/32`, 'via', HOST_IP];
    execFileSync('nsenter', ['--net=/proc/self/fd/3', ...route], {
      stdio: ['ignore', 'ignore', 'inherit', machine.outside],
    });

    assert.equal(await outside.tcp(mine.ipAddress, 80, 300), 'ETIMEDOUT');
    assert.equal(await theirs.peer.tcp(mine.ipAddress, 80, 300), 'ETIMEDOUT');
  });

  test('a port of one is taken for the others', async () => {
    const bindings = { '80/tcp': [{ HostPort: '8082' }] };
    const id = await first.create(['true'], { HostConfig: { PortBindings: bindings } });

    const answer = await first.post<{ message: string }>(`/containers/${id}/start`);

    assert.equal(answer.status, 500);
    assert.match(answer.body.message, /8082.*(allocated|in use)/);
    await first.delete(`/containers/${id}`);
  });

  test('a killed daemon leaves the traffic of all alone', async () => {
    await first.kill('SIGKILL');
    await checkTraffic(daemons);

    await first.startAgain();
    await checkTraffic(daemons);
  });

  test('a daemon that ends without containers removes its own rules, and none of the others', async () => {
    const [ended] = daemons.splice(1, 1);
    assert.match(run('nft', 'list', 'tables'), /gantry-first0/);

    await ended!.end();

    assert.doesNotMatch(`${run('ip', '-o', 'link')}${run('nft', 'list', 'ruleset')}${run('iptables', '-S')}`, /first0/);
    assert.equal(await host.tcp('127.0.0.1', ended!.port), 'ECONNREFUSED');
    await checkTraffic(daemons);
  });

  test('when dockerd ends, traffic of the other goes on', async () => {
    const [ended] = daemons.splice(0, 1);

    await ended!.end();

    await checkTraffic(daemons);
  });

  test('the last that ends leaves the rules that were there before it', async () => {
    const [last] = daemons.splice(0, 1);

    await last!.end();

    assert.equal(run('iptables', '-S'), ofDockerd);
    assert.doesNotMatch(run('ip', '-o', 'link'), /second0/);
    assert.doesNotMatch(run('nft', 'list', 'tables'), /gantry/);
  });
});

async function place(api: Api, name: string, hostConfig: object = {}): Promise<Place & AsyncDisposable> {
  // dockerd publishes only what is exposed as well.
  const exposed = { '80/tcp': {}, '53/udp': {} };
  const body = { Image: 'busybox', Cmd: ['sleep', '1000'], ExposedPorts: exposed, HostConfig: hostConfig };
  const created = await api.post<{ Id: string }>(`/containers/create?name=${name}`, body);
  const started = await api.post(`/containers/${created.body.Id}/start`);
  assert.equal(started.status, 204, started.raw.toString());
  const { State, NetworkSettings } = (await api.get<Inspect>(`/containers/${name}/json`)).body;
  const namespace = openSync(`/proc/${State.Pid}/ns/net`, 'r');
  const peer = new Peer(namespace);
  await peer.serveTcp(80, name);
  await peer.serveUdp(53, name);
  return {
    name,
    ipAddress: NetworkSettings.IPAddress,
    peer,
    async [Symbol.asyncDispose]() {
      await peer[Symbol.asyncDispose]();
      closeSync(namespace);
    },
  };
}

/** The name of the answering place; the address that it saw depends on the way of the packets. */
function named(answer: string): string {
  return answer.split(' sees ')[0]!;
}

function run(command: string, ...words: string[]): string {
  return execFileSync(command, words, { encoding: 'utf8', stdio: 'pipe' });
}
