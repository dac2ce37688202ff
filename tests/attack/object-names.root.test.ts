import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** Names that every JavaScript object has: a look-up in a plain object finds them. */
const OBJECT_NAMES = ['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__'];
/** An ordinary name: all others are answered as it is. */
const ORDINARY = 'ordinary';

type Request = readonly [method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown];

/** A request in which `NAME` is replaced; several are sent one after the other. */
type Probe = readonly [subject: string, ...requests: Request[]];

const create = (body: object): Request => ['POST', '/containers/create', { Image: 'busybox', Cmd: ['true'], ...body }];
const host = (HostConfig: object): Request => create({ HostConfig });
const filter = (filters: object): string => encodeURIComponent(JSON.stringify(filters));
const buildfile = (text: string): Request => ['POST', '/build?q=1', text];

/** Images and stages, whose names have no capitals. */
const IMAGE_PROBES: readonly Probe[] = [
  ['an image', ['GET', '/images/NAME/json'], ['POST', '/images/NAME/tag?repo=x'], ['GET', '/images/NAME/get']],
  ['a tag of an image', ['GET', '/images/busybox:NAME/json']],
  ['an image of a container', create({ Image: 'NAME' })],
  ['a stage', buildfile('FROM busybox\nCOPY --from=NAME a b'), ['POST', '/build?target=NAME', 'FROM busybox']],
];

const PROBES: readonly Probe[] = [
  [
    'a container',
    ['GET', '/containers/NAME/json'],
    ['POST', '/containers/NAME/start'],
    ['GET', '/containers/NAME/top'],
  ],
  ['an exec', ['GET', '/exec/NAME/json'], ['POST', '/exec/NAME/start', {}]],
  ['a missing volume', ['GET', '/volumes/NAME'], ['DELETE', '/volumes/NAME']],
  ['a missing network', ['GET', '/networks/NAME'], ['DELETE', '/networks/NAME']],
  ['a missing plugin', ['GET', '/plugins/NAME'], ['POST', '/plugins/NAME/enable']],
  ['a path', ['GET', '/NAME'], ['POST', '/NAME/create', {}]],
  ['a filter of containers', ['GET', `/containers/json?filters=${filter({ NAME: ['x'] })}`]],
  ['a value of the filter status', ['GET', `/containers/json?filters=${filter({ status: ['NAME'] })}`]],
  ['a value of the filter health', ['GET', `/containers/json?filters=${filter({ health: ['NAME'] })}`]],
  ['a value of the filter label', ['GET', `/containers/json?filters=${filter({ label: ['NAME'] })}`]],
  ['a filter of images', ['GET', `/images/json?filters=${filter({ NAME: ['x'] })}`]],
  ['a filter of networks', ['GET', `/networks?filters=${filter({ NAME: ['x'] })}`]],
  ['a value of the filter type', ['GET', `/networks?filters=${filter({ type: ['NAME'] })}`]],
  ['a filter of volumes', ['GET', `/volumes?filters=${filter({ NAME: ['x'] })}`]],
  ['a filter of events', ['GET', `/events?since=1&until=2&filters=${filter({ NAME: ['x'] })}`]],
  ['a value of events', ['GET', `/events?since=1&until=2&filters=${filter({ type: ['NAME'], event: ['NAME'] })}`]],
  ['a parameter', ['GET', '/containers/json?NAME=1']],
  ['a signal', ['POST', '/containers/probe/kill?signal=NAME'], ['POST', '/containers/probe/kill?signal=SIGNAME']],
  ['a field of a body', create({ NAME: { a: 1 } }), host({ NAME: { a: 1 } })],
  ['a stop signal', create({ StopSignal: 'NAME' })],
  ['a port', create({ ExposedPorts: { NAME: {} } }), create({ ExposedPorts: { '80/NAME': {} } })],
  ['a published port', host({ PortBindings: { '80/NAME': [{ HostPort: '1' }] } })],
  ['a user', create({ User: 'NAME' })],
  ['a network mode', host({ NetworkMode: 'NAME' }), host({ NetworkMode: 'container:NAME' })],
  [
    'other modes',
    ...['IpcMode', 'PidMode', 'UTSMode', 'UsernsMode', 'CgroupnsMode'].map((mode) => host({ [mode]: 'NAME' })),
  ],
  ['a network of a container', create({ NetworkingConfig: { EndpointsConfig: { NAME: {} } } })],
  ['a runtime', host({ Runtime: 'NAME' })],
  ['an isolation', host({ Isolation: 'NAME' })],
  ['a restart policy', host({ RestartPolicy: { Name: 'NAME' } })],
  ['a log driver', host({ LogConfig: { Type: 'NAME' } })],
  ['a log option', host({ LogConfig: { Type: 'json-file', Config: { NAME: '1' } } })],
  ['a facility', host({ LogConfig: { Type: 'syslog', Config: { 'syslog-facility': 'NAME' } } })],
  ['a volume driver', host({ VolumeDriver: 'NAME', Binds: ['vNAME:/v'] })],
  ['a mode of a bind', host({ Binds: ['/tmp:/t:NAME'] })],
  ['a type of a mount', host({ Mounts: [{ Type: 'NAME', Target: '/t', Source: '/tmp' }] })],
  [
    'a propagation',
    host({ Mounts: [{ Type: 'bind', Target: '/t', Source: '/tmp', BindOptions: { Propagation: 'NAME' } }] }),
  ],
  ['an option of a tmpfs', host({ Tmpfs: { '/t': 'NAME' } })],
  ['a resource limit', host({ Ulimits: [{ Name: 'NAME', Soft: 1, Hard: 1 }] })],
  ['a kernel parameter', host({ Sysctls: { NAME: '1' } })],
  ['a capability', host({ CapAdd: ['NAME'] }), host({ CapDrop: ['NAME'] })],
  ['a security option', host({ SecurityOpt: ['NAME'] }), host({ SecurityOpt: ['NAME=1'] })],
  ['an action of a filter', host({ SecurityOpt: ['seccomp={"defaultAction":"NAME"}'] })],
  ['a storage option', host({ StorageOpt: { NAME: '1' } })],
  ['permissions of a device', host({ Devices: [{ PathOnHost: '/dev/null', CgroupPermissions: 'NAME' }] })],
  ['a link', host({ Links: ['NAME:alias'] })],
  ['other containers', host({ VolumesFrom: ['NAME'] })],
  ['a driver of a network', ['POST', '/networks/create', { Name: 'xNAME', Driver: 'NAME' }]],
  ['a driver of addresses', ['POST', '/networks/create', { Name: 'xNAME', IPAM: { Driver: 'NAME' } }]],
  ['a driver of a volume', ['POST', '/volumes/create', { Name: 'xNAME', Driver: 'NAME' }]],
  ['an option of a volume', ['POST', '/volumes/create', { Name: 'x', DriverOpts: { NAME: '1' } }]],
  ['an instruction', buildfile('FROM busybox\nNAME x'), ['POST', '/images/create?fromSrc=-&changes=NAME%20x', '']],
  ['a flag of an instruction', buildfile('FROM busybox\nCOPY --NAME=1 a b'), buildfile('FROM busybox\nRUN --NAME=1 a')],
  [
    'a mount of a step',
    buildfile('FROM busybox\nRUN --mount=type=NAME true'),
    buildfile('FROM busybox\nRUN --mount=NAME=1 a'),
  ],
  ['a directive', buildfile('# NAME=x\nFROM busybox')],
  ['a variable', buildfile('FROM busybox\nLABEL a=${NAME}\nLABEL b=${NAME:-c}')],
  [
    'a platform',
    ['POST', '/build?platform=linux/NAME', 'FROM busybox'],
    ['POST', '/build?platform=NAME', 'FROM busybox'],
  ],
  ['an argument', ['POST', `/build?buildargs=${encodeURIComponent('{"NAME":"1"}')}`, 'FROM busybox']],
  ['an update', ['POST', '/containers/probe/update', { RestartPolicy: { Name: 'NAME' } }]],
  ['a service', ['GET', '/services/NAME'], ['POST', '/swarm/init', { NAME: 1, ListenAddr: 'NAME' }]],
];

suite('names that every object has', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    await engine.run(['sleep', '1000'], {}, 'probe');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function send([method, path, body]: Request, name: string): Promise<string> {
    const named = <T>(value: T): T => JSON.parse(JSON.stringify(value ?? null).replaceAll('NAME', name)) as T;
    const isBuild = path.startsWith('/build');
    const content = isBuild
      ? new TarWriter().add({ name: 'Dockerfile', content: named(body as string) }).end()
      : named(body);
    const headers = isBuild ? { 'Content-Type': 'application/x-tar' } : {};
    const at = path.replaceAll('NAME', name);
    const { status, raw } =
      method === 'POST'
        ? await engine.post(at, content ?? undefined, { headers })
        : await (method === 'GET' ? engine.get(at) : engine.delete(at));
    // Ids and the names in any case; a request that is accepted has an id in its answer.
    const text = raw
      .toString()
      .replaceAll(new RegExp(name, 'gi'), 'NAME')
      .replaceAll(/[0-9a-f]{12,64}/g, 'ID');
    return `${status} ${text}`;
  }

  const all = [
    ...PROBES.map((probe) => [OBJECT_NAMES, ...probe] as const),
    ...IMAGE_PROBES.map((probe) => [['constructor'], ...probe] as const),
  ];
  for (const [names, subject, ...requests] of all) {
    test(`as ${subject} are answered like any other name`, async () => {
      for (const request of requests) {
        // At the same time: an unknown driver may be a plugin that appears late, and is waited for.
        const answers = await Promise.all([ORDINARY, ...names].map(async (name) => await send(request, name)));
        const [expected] = answers;
        for (const [at, name] of names.entries())
          assert.equal(answers[at + 1], expected, `${request.slice(0, 2).join(' ')} with ${name}`);
      }
    });
  }
});
