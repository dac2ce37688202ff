import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd, NEWER_JUDGE } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { MODE_ROWS, type ModeRow } from './gateway-modes.ts';

const execute = promisify(execFile);

/** A daemon, and a namespace outside of its machine that two links lead to. */
type Side = Readonly<{ api: Api; pid: number; outside: number }>;
type Message = { message?: string };

const SERVER = 'mkdir /w; echo hi > /w/index.html; httpd -p 99 -h /w; exec httpd -f -p 80 -h /w';
/** A refused or dropped connection is over then. */
const ANSWER_TIMEOUT_SECONDS = '6';

suite('gateway modes of bridges', { concurrency: false }, () => {
  const parts = new AsyncDisposableStack();
  const sides: Side[] = [];
  before(async () => {
    const ours = parts.use(await TestEngine.start({ version: '1.51', flags: ['--max-api-version=1.55'] }));
    sides.push(await sideOf(parts, ours, ours.pid));
    if (NEWER_JUDGE === undefined) return; // by hand beside dockerd 28.5
    const theirs = parts.use(await Dockerd.start());
    await theirs.api.post('/images/load?quiet=1', await busyboxArchive());
    sides.push(await sideOf(parts, parts.use(new Api(theirs.socketPath, '/v1.51')), theirs.pid));
  });
  after(async () => await parts.disposeAsync());

  for (const row of MODE_ROWS) {
    test(`gateway mode ${row.title}: ${row.chosen === undefined ? 'as dockerd' : `unlike dockerd: ${row.chosen}`}`, async () => {
      const compared = row.chosen === undefined ? sides : sides.slice(0, 1);
      const all = await Promise.all(compared.map(async (side) => await outcome(side, row)));
      for (const one of all) assert.deepEqual(one, row.expected);
    });
  }
});

async function sideOf(parts: AsyncDisposableStack, api: Api, pid: number): Promise<Side> {
  const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo made; exec sleep infinity'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(holder.stdout, 'data');
  const outside = holder.pid!;
  parts.defer(() => void holder.kill('SIGKILL'));
  for (const [number, name] of ['up0', 'up1'].entries()) {
    await within(pid, `ip link add ${name} type veth peer name eth${number} netns ${outside}`);
    for (const [at, link, host] of [
      [pid, name, 1],
      [outside, `eth${number}`, 2],
    ] as const) {
      await within(at, `ip address add 10.20${number}.0.${host}/24 dev ${link}`);
      await within(at, `ip address add fd00:20${number}::${host}/64 dev ${link} nodad`);
      await within(at, `ip link set ${link} up`);
    }
  }
  await within(outside, 'ip route add default via 10.200.0.1');
  await within(outside, 'ip -6 route add default via fd00:200::1');
  await within(outside, 'ip route add default via 10.201.0.1 metric 200');
  await api.post('/networks/create', { Name: 'other' });
  const other = { Image: 'busybox', Cmd: ['sleep', '1000'], HostConfig: { NetworkMode: 'other' } };
  await api.post('/containers/create?name=other', other);
  await api.post('/containers/other/start');
  return { api, pid, outside };
}

async function outcome(side: Side, { options, isInternal = false, isSixAlone = false }: ModeRow): Promise<unknown> {
  const { api, pid, outside } = side;
  const named = Object.entries(options).map(([name, value]) => [`com.docker.network.bridge.${name}`, value]);
  const pools = [...(isSixAlone ? [] : [{ Subnet: '10.77.128.0/24' }]), { Subnet: 'fd00:77::/64' }];
  const made = await api.post<Message>('/networks/create', {
    Name: 'mode',
    EnableIPv4: !isSixAlone,
    EnableIPv6: true,
    IPAM: { Config: pools },
    Options: { ...Object.fromEntries(named), 'com.docker.network.bridge.name': 'mode0' },
    Internal: isInternal,
  });
  if (made.status !== 201) return made.body.message;
  await api.post('/containers/create?name=web', {
    Image: 'busybox',
    Cmd: ['sh', '-c', SERVER],
    ExposedPorts: { '80/tcp': {} },
    HostConfig: { NetworkMode: 'mode', PortBindings: { '80/tcp': [{ HostPort: '8101' }] } },
  });
  const started = await api.post<Message | undefined>('/containers/web/start');
  if (started.status !== 204) return started.body?.message;
  const { State, NetworkSettings } = (await api.get<Inspect>('/containers/web/json')).body;
  await within(State.Pid, 'curl -s --retry 100 --retry-delay 0 --retry-connrefused http://127.0.0.1/');
  const { Gateway, IPAddress, IPv6Gateway, GlobalIPv6Address } = NetworkSettings.Networks['mode']!;
  const other = (await api.get<Inspect>('/containers/other/json')).body.State.Pid;
  const [four, six] = [IPAddress, `[${GlobalIPv6Address}]`];
  const at = { '80': `${four}/`, '99': `${four}:99/`, 'six 80': `${six}/`, 'six 99': `${six}:99/` };
  const [host, out, trusted, beside, leaves, bridge] = await Promise.all([
    reached(pid, { ...at, port: '127.0.0.1:8101/' }),
    reached(outside, { ...at, port: '10.200.0.1:8101/', 'six port': '[fd00:200::1]:8101/' }, [four, GlobalIPv6Address]),
    reached(outside, { '80': `--interface eth1 ${four}/`, '99': `--interface eth1 ${four}:99/` }),
    reached(other, { '80': at['80'], '99': at['99'] }),
    reached(State.Pid, {}, ['10.200.0.2', 'fd00:200::2']),
    within(pid, "ip -o address show dev mode0 scope global | awk '{print $4}'"),
  ]);
  await api.delete('/containers/web?force=1');
  await api.delete('/networks/mode');
  return {
    addresses: `${IPAddress} by ${Gateway}, ${GlobalIPv6Address} by ${IPv6Gateway}`,
    ports: (NetworkSettings.Ports['80/tcp'] ?? []).map(({ HostIp, HostPort }) => `${HostIp} ${HostPort}`).join(', '),
    bridge: bridge.trim().split('\n').toSorted().join(' '),
    ...{ host, out, trusted, beside, leaves },
  };
}

/** The names of the addresses that answer. */
async function reached(
  pid: number,
  urls: Readonly<Record<string, string>>,
  pings: readonly string[] = [],
): Promise<string> {
  const asked = Object.entries(urls).map(async ([name, url]) => {
    const page = await within(pid, `curl -s -g --max-time ${ANSWER_TIMEOUT_SECONDS} ${url}`).catch(() => '');
    return page === 'hi\n' ? [name] : [];
  });
  const pinged = pings.map(async (ip) => {
    const command = `busybox ping -c 1 -W ${ANSWER_TIMEOUT_SECONDS} ${ip}`;
    return await within(pid, command).then(
      () => [ip.includes(':') ? 'six ping' : 'ping'],
      () => [],
    );
  });
  return (await Promise.all([...asked, ...pinged])).flat().join(', ');
}

/** Runs a line of the shell in the network namespace of a process. */
async function within(pid: number, line: string): Promise<string> {
  return (await execute('nsenter', [`--net=/proc/${pid}/ns/net`, 'sh', '-c', line])).stdout;
}
