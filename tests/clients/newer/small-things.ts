import { unframe } from '@gantry/client/frames.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';

import { docker, placed, type Side } from '../both-engines.ts';
import type { NewerRow } from '../newer-rows.ts';

type Shown = {
  HostConfig: Record<string, unknown>;
  Config: Record<string, unknown>;
  Mounts: Record<string, unknown>[];
  State: Record<string, unknown>;
};
type Json = Record<string, unknown>;

/** Creates, shows and removes a container; a refusal is its message. */
async function shown<T>({ api }: Side, body: Json, look: (shown: Shown) => T): Promise<T | string> {
  const { status, body: made } = await api.post<{ Id: string; message: string }>('/containers/create', {
    Image: 'busybox',
    ...body,
  });
  if (status !== 201) return `${status} ${made.message}`;
  const { body: inspected } = await api.get<Shown>(`/containers/${made.Id}/json`);
  await api.delete(`/containers/${made.Id}?v=1`);
  return look(inspected);
}

/** Output of a container that ran to its end. */
async function output({ api }: Side, body: Json): Promise<string> {
  const { body: made } = await api.post<{ Id: string; message?: string }>('/containers/create', {
    Image: 'busybox',
    ...body,
  });
  const { status, body: refusal } = await api.post<{ message: string }>(`/containers/${made.Id}/start`);
  if (status !== 204) return refusal.message;
  await api.post(`/containers/${made.Id}/wait`);
  const { raw } = await api.get(`/containers/${made.Id}/logs?stdout=1&stderr=1`);
  await api.delete(`/containers/${made.Id}?v=1`);
  const { stdout, stderr } = unframe(raw);
  return stdout + stderr;
}

async function run({ api }: Side, name: string, body: Json): Promise<void> {
  await api.post(`/containers/create?name=${name}`, { Image: 'busybox', ...body });
  await api.post(`/containers/${name}/start`);
}

const MOUNTS = (side: Side): Json[] => [
  { Type: 'bind', Source: placed(side, '{dir}/folder'), Target: '/m', ReadOnly: true, Consistency: 'delegated' },
  { Type: 'bind', Source: placed(side, '{dir}/folder'), Target: '/m', BindOptions: { Propagation: 'rslave' } },
  { Type: 'bind', Source: placed(side, '{dir}/folder'), Target: '/m', BindOptions: { NonRecursive: true } },
  { Type: 'bind', Source: placed(side, '{dir}/folder'), Target: '/m', BindOptions: { Propagation: 'odd' } },
  { Type: 'bind', Source: placed(side, '{dir}/missing'), Target: '/m' },
  { Type: 'bind', Target: '/m' },
  { Type: 'bind', Source: '/tmp', Target: '/m', VolumeOptions: {} },
  { Type: 'volume', Source: 'named', Target: '/m' },
  { Type: 'volume', Target: '/m', VolumeOptions: { NoCopy: true, Labels: { a: 'b' } } },
  { Type: 'volume', Source: 'other', Target: '/m', VolumeOptions: { DriverConfig: { Name: 'local' } } },
  {
    Type: 'volume',
    Source: 'odd',
    Target: '/m',
    VolumeOptions: { DriverConfig: { Name: 'local', Options: { o: 'x' } } },
  },
  { Type: 'tmpfs', Target: '/m', TmpfsOptions: { SizeBytes: 1024 * 1024, Mode: 0o700 } },
  { Type: 'tmpfs', Target: '/m', ReadOnly: true },
  { Type: 'tmpfs', Source: 'x', Target: '/m' },
  { Type: 'npipe', Source: 'x', Target: '/m' },
  { Type: 'odd', Target: '/m' },
  { Type: 'tmpfs', Target: 'm' },
];

export const smallRows: readonly NewerRow[] = [
  {
    title: 'defaults of a creation',
    work: async (side) =>
      await shown(side, {}, ({ HostConfig: { Runtime: _own, PortBindings: _empty, ...rest } }) => rest),
  },
  {
    title: 'Mounts, as shown',
    work: async (side) => {
      const results: unknown[] = [];
      for (const mount of MOUNTS(side)) {
        results.push(
          await shown(side, { HostConfig: { Mounts: [mount] } }, ({ HostConfig, Mounts }) => [
            HostConfig.Mounts,
            Mounts,
          ]),
        );
      }
      return results;
    },
  },
  {
    title: 'Mounts, as the container sees them',
    work: async (side) => {
      const seen: string[] = [];
      for (const mount of MOUNTS(side).filter(({ Type }) => Type !== 'odd' && Type !== 'npipe')) {
        const { status } = await side.api.post('/containers/create', {
          Image: 'busybox',
          HostConfig: { Mounts: [mount] },
        });
        if (status !== 201) continue;
        const Cmd = ['sh', '-c', 'grep " /m " /proc/self/mounts | cut -d" " -f3,4 | sed "s/,inode64//"; stat -c %a /m'];
        seen.push(await output(side, { Cmd, HostConfig: { Mounts: [{ ...mount, Source: mount.Source }] } }));
      }
      await side.api.post('/containers/prune');
      return seen.map((text) =>
        text.replaceAll(/(lowerdir|upperdir|workdir|uuid|xino|relatime|errors|discard)[^, \n]*,?/g, ''),
      );
    },
  },
  {
    title: 'networks with ConfigOnly and ConfigFrom',
    work: async ({ api }) => {
      const said: unknown[] = [];
      const create = async (Name: string, more: object): Promise<void> => {
        const { status, body } = await api.post<Json>('/networks/create', { Name, ...more });
        said.push([status, body.message]);
      };
      const show = async (name: string): Promise<void> => {
        const { body } = await api.get<Json>(`/networks/${name}`);
        said.push({ ...body, Id: '', Created: '' });
      };
      const IPAM = { Config: [{ Subnet: '10.77.0.0/24', Gateway: '10.77.0.9' }] };
      const Options = { 'com.docker.network.bridge.name': 'conf0', 'com.docker.network.driver.mtu': '1400' };
      await create('conf', { ConfigOnly: true, IPAM, Options, Labels: { a: 'b' } });
      await show('conf');
      await create('wrong', { ConfigOnly: true, Internal: true });
      await create('other', { ConfigOnly: true, Driver: 'macvlan', EnableIPv6: true });
      await show('other');
      said.push((await api.delete('/networks/other')).status);
      await create('wrong', { ConfigOnly: true, ConfigFrom: { Network: 'conf' } });
      await create('wrong', { ConfigFrom: { Network: 'conf' }, IPAM });
      await create('wrong', { ConfigFrom: { Network: 'conf' }, Labels: { c: 'd' } });
      await create('wrong', { ConfigFrom: { Network: 'nope' } });
      await create('wrong', { ConfigFrom: { Network: 'bridge' } });
      await create('user', { ConfigFrom: { Network: 'conf' } });
      await show('user');
      said.push((await api.delete('/networks/conf')).status);
      await api.post('/containers/create?name=member', { Image: 'busybox', HostConfig: { NetworkMode: 'conf' } });
      said.push((await api.post('/containers/member/start')).status >= 400);
      await api.delete('/containers/member?force=1');
      const { body: pruned } = await api.post('/networks/prune');
      said.push(pruned, (await api.delete('/networks/conf')).status);
      return said;
    },
  },
  {
    title: 'exposed ports of SCTP',
    work: async (side) => {
      await run(side, 'sctp', { Cmd: ['sleep', '1000'], ExposedPorts: { '90/sctp': {} } });
      const { status, body } = await side.api.get<{ Names: string[]; Ports: object[] }[]>('/containers/json');
      const { body: shown } = await side.api.get<{ NetworkSettings: Json }>('/containers/sctp/json');
      await side.api.delete('/containers/sctp?force=1');
      return { status, listed: body.map(({ Names, Ports }) => [Names, Ports]), ports: shown.NetworkSettings.Ports };
    },
  },
  {
    title: 'networks with Ingress',
    work: async ({ api }) => (await api.post('/networks/create', { Name: 'later', Ingress: true })).status,
  },
  {
    title: 'Builder-Version of /_ping',
    work: async ({ api }) => (await api.get('/_ping')).headers['builder-version'] ?? '',
    differs: { ours: '1', why: 'dockerd tells it from 22.06 on' },
  },
  {
    title: 'headers of GET and HEAD /_ping',
    work: async ({ api }) => {
      const names = ['cache-control', 'pragma', 'ostype', 'docker-experimental', 'api-version'];
      const [got, head] = [await api.get('/_ping'), await api.request('HEAD', '/_ping')];
      return [got, head].map(({ status, headers }) => [status, names.map((name) => headers[name])]);
    },
  },
  {
    title: 'SecurityOptions of /info',
    work: async ({ api }) => (await api.get<{ SecurityOptions: string[] }>('/info')).body.SecurityOptions,
  },
  {
    title: 'one-shot statistics',
    work: async (side) => {
      await run(side, 'measured', { Cmd: ['sleep', '1000'] });
      const { body } = await side.api.get<Record<string, Json>>('/containers/measured/stats?stream=0&one-shot=1');
      const { body: refusal, status } = await side.api.get('/containers/measured/stats?one-shot=1');
      await side.api.delete('/containers/measured?force=1');
      const { precpu_stats, cpu_stats, preread } = body;
      return {
        ...{ precpu_stats, preread, refusal, status },
        used: (cpu_stats!.cpu_usage as { total_usage: number }).total_usage > 0,
        online: Number(cpu_stats!.online_cpus) > 0,
      };
    },
  },
  {
    title: 'GET /networks without containers',
    work: async (side) => {
      await run(side, 'member', { Cmd: ['sleep', '1000'] });
      const { body } = await side.api.get<{ Name: string; Containers: Json }[]>('/networks');
      const { body: bridge } = await side.api.get<{ Containers: Json }>('/networks/bridge');
      await side.api.delete('/containers/member?force=1');
      return {
        listed: Object.fromEntries(body.map(({ Name, Containers }) => [Name, Object.keys(Containers).length])),
        inspected: Object.keys(bridge.Containers).length,
        fields: Object.keys(bridge).toSorted(),
      };
    },
  },
  {
    title: 'POST /build tells the id in a line of its own',
    work: async ({ api }) => {
      const context = new TarWriter().add({ name: 'Dockerfile', content: 'FROM busybox\nLABEL small=things\n' }).end();
      const { raw } = await api.post('/build?t=small', context, { headers: { 'Content-Type': 'application/x-tar' } });
      const lines = raw
        .toString()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Json);
      const { body } = await api.get<{ Id: string }>('/images/small/json');
      await api.delete('/images/small');
      const aux = lines.filter((line) => 'aux' in line).map((line) => line.aux as { ID: string });
      return { count: aux.length, isImage: aux[0]?.ID === body.Id, place: lines.findIndex((line) => 'aux' in line) };
    },
  },
  {
    title: 'exec: Env, WorkingDir, Pid, and its events',
    work: async (side) => {
      const { api } = side;
      await run(side, 'host', { Cmd: ['sleep', '1000'] });
      const since = Date.now() / 1000;
      const { body: made } = await api.post<{ Id: string }>('/containers/host/exec', {
        Cmd: ['sh', '-c', 'echo $A; pwd'],
        Env: ['A=b'],
        WorkingDir: '/tmp',
        AttachStdout: true,
      });
      const { raw } = await api.post(`/exec/${made.Id}/start`, {});
      const { body: after } = await api.get<Json>(`/exec/${made.Id}/json`);
      type Event = { Action: string; Actor: Json };
      let events: Event[] = [];
      while (!events.some(({ Action }) => Action === 'exec_die')) {
        const { raw: told } = await api.get(`/events?since=${since}&until=${Math.ceil(Date.now() / 1000)}`);
        const lines = told.toString().trim().split('\n');
        events = lines.filter((line) => line.includes('"exec_')).map((line) => JSON.parse(line) as Event);
      }
      await api.delete('/containers/host?force=1');
      return {
        stdout: unframe(raw).stdout,
        fields: Object.keys(after).toSorted(),
        events: events.map(({ Action, Actor }) => [Action, Object.keys(Actor.Attributes as Json).toSorted()]),
      };
    },
  },
  {
    title: 'filters of containers',
    work: async (side) => {
      await run(side, 'healthy', {
        Cmd: ['sleep', '1000'],
        Healthcheck: { Test: ['CMD', 'true'], Interval: 3_600_000_000_000, StartPeriod: 1_000_000_000 },
      });
      await run(side, 'published', {
        Cmd: ['sleep', '1000'],
        ExposedPorts: { '80/tcp': {} },
        HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '18080' }] } },
      });
      const found: unknown[] = [];
      for (const filters of [
        { health: ['none'] },
        { health: ['odd'] },
        { publish: ['18080'] },
        { publish: ['80'] },
        { publish: ['18000-18100/tcp'] },
        { expose: ['80/tcp'] },
        { expose: ['81'] },
        { 'is-task': ['true'] },
        { 'is-task': ['false'], name: ['published'] },
      ]) {
        const { status, body } = await side.api.get<{ Names: string[] }[]>(
          `/containers/json?filters=${encodeURIComponent(JSON.stringify(filters))}`,
        );
        found.push([filters, status, status === 200 ? body.map(({ Names }) => Names[0]) : '']);
      }
      await Promise.all(
        ['healthy', 'published'].map(async (name) => await side.api.delete(`/containers/${name}?force=1`)),
      );
      return found;
    },
  },
  {
    title: 'fields of volumes and images',
    work: async ({ api }) => {
      const { body: volume } = await api.post<Json>('/volumes/create', { Name: 'small', Labels: { a: 'b' } });
      const { body: images } = await api.get<Json[]>('/images/json?filters={"reference":["busy*"]}');
      await api.delete('/volumes/small?force=1');
      return { volume: Object.keys(volume).toSorted(), images: images.map((image) => Object.keys(image).toSorted()) };
    },
  },
  {
    title: 'docker run with flags of newer versions',
    work: async (side) => {
      const said: unknown[] = [];
      for (const words of [
        ['--cpus=0.5', 'busybox', 'true'],
        ['--stop-timeout=3', 'busybox', 'true'],
        ['--gpus=all', 'busybox', 'true'],
        ['--ipc=private', 'busybox', 'sh', '-c', 'df /dev/shm | tail -1 | cut -d" " -f1'],
        ['--ipc=none', 'busybox', 'sh', '-c', 'ls -d /dev/shm'],
        ['--device-cgroup-rule=c 42:* rmw', 'busybox', 'true'],
        ['--device-cgroup-rule=odd', 'busybox', 'true'],
        ['--mount', 'type=tmpfs,dst=/m,tmpfs-size=1m,tmpfs-mode=1770', 'busybox', 'stat', '-c', '%a', '/m'],
        ['--mount', 'type=volume,dst=/m,volume-nocopy', 'busybox', 'ls', '/m'],
        ['--health-start-period=1s', '--health-cmd=true', 'busybox', 'true'],
        ['--sysctl=net.ipv4.ip_forward=1', 'busybox', 'cat', '/proc/sys/net/ipv4/ip_forward'],
        ['--cgroupns=private', 'busybox', 'true'],
        ['--network-alias=x', 'busybox', 'true'],
        ['--env=A=b', '--workdir=/tmp', 'busybox', 'pwd'],
      ]) {
        said.push([words, await docker(side, ['run', '--rm', ...words])]);
      }
      return said;
    },
  },
];
