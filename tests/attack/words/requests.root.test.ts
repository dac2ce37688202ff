import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, suite, test } from 'node:test';

import { internalWord } from '@gantry/testing/internal-words.ts';
import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Row = readonly [request: string, body?: string | object, headers?: Readonly<Record<string, string>>];

const LONG = 'a'.repeat(300);
const NUL = '\u0000';
const url = encodeURIComponent;
const HOSTS = ['%zz', '[::1', '127.0.0.1:1', LONG, 'a..b', '127.0.0.1:99999', `${LONG}:1`];

const NOT_JSON = ['{', '[', 'nul', '{"a"', '{"a":1,}', '"\\u', '{"a":"\u0001"}', '\u00ff', '{} {}'];
const malformed: readonly Row[] = [
  ...NOT_JSON.flatMap((text): Row[] => [
    ['POST /containers/create', text],
    [`GET /containers/json?filters=${url(text)}`],
    [`POST /build?buildargs=${url(text)}`, '', { 'Content-Type': 'application/x-tar' }],
    [`POST /build?labels=${url(text)}`, '', { 'Content-Type': 'application/x-tar' }],
    [`POST /build?cachefrom=${url(text)}`, '', { 'Content-Type': 'application/x-tar' }],
    [
      'POST /build',
      '',
      { 'Content-Type': 'application/x-tar', 'X-Registry-Config': Buffer.from(text).toString('base64') },
    ],
    ['POST /images/create?fromImage=127.0.0.1:1/x', '', { 'X-Registry-Auth': Buffer.from(text).toString('base64') }],
  ]),
  ...['%zz', '%ff', '%00', LONG.repeat(20)].flatMap((name): Row[] => [
    [`GET /containers/${name}/json`],
    [`GET /images/${name}/json`],
    [`GET /volumes/${name}`],
    [`GET /containers/target/archive?path=${name}`],
    [`GET /containers/target/archive?path=/etc/${name}`],
    [`PUT /containers/target/archive?path=/etc/${name}`, 'x'],
    [`GET /containers/json?filters=${name}`],
    [`POST /build?remote=http://127.0.0.1:1/${name}`],
    [`POST /build?dockerfile=${name}`, ''],
    [`GET /containers/target/logs?stdout=1&since=${name}`],
    [`POST /containers/target/kill?signal=${name}`],
    [`POST /containers/target/rename?name=${name}`],
  ]),
  ['POST /build', 'garbage', { 'Content-Type': 'application/x-tar' }],
  ['POST /images/load', 'garbage', { 'Content-Type': 'application/x-tar' }],
  ['POST /images/create?fromSrc=-', 'garbage', { 'Content-Type': 'application/x-tar' }],
  ['PUT /containers/target/archive?path=/etc', 'garbage', { 'Content-Type': 'application/x-tar' }],
  ['POST /plugins/create?name=x', 'garbage', { 'Content-Type': 'application/x-tar' }],
  ['GET /events?since=soon'],
  ['POST /commit?container=target&changes=FROM%20{'],
];
const addresses: readonly Row[] = HOSTS.flatMap((host): Row[] => [
  [`POST /build?remote=http://${url(host)}/x`],
  [`POST /build?remote=https://${url(host)}/x`],
  [`POST /images/create?fromSrc=http://${url(host)}/x`],
  [`POST /images/create?fromImage=${url(host)}/x`],
  ['POST /auth', { username: 'a', password: 'b', serveraddress: host }],
  ['POST /auth', { username: 'a', password: 'b', serveraddress: `https://${host}/v1/` }],
  [`GET /images/search?term=${url(host)}/x`],
  [`POST /plugins/pull?remote=${url(host)}/x`, []],
  ['POST /swarm/join', { ListenAddr: '127.0.0.1:0', RemoteAddrs: [host], JoinToken: 'SWMTKN-1-a-b' }],
  ['POST /swarm/init', { ListenAddr: `${host}:x` }],
  ['POST /swarm/init', { ListenAddr: '0.0.0.0:2377', AdvertiseAddr: `${host}/x` }],
]);
/** Each is created and started. */
const containers: readonly object[] = [
  { Cmd: ['/no/such/program'] },
  { Cmd: ['/etc'] },
  { Cmd: [`/${LONG}`] },
  { Cmd: [NUL] },
  { Cmd: ['/etc/passwd'] },
  { Env: [NUL] },
  { WorkingDir: `/${NUL}` },
  { WorkingDir: `/${LONG}` },
  { WorkingDir: `/${'a/'.repeat(3000)}` },
  { WorkingDir: '/etc/passwd' },
  { User: LONG },
  { User: NUL },
  { Hostname: LONG },
  { Volumes: { [`/${LONG}`]: {} } },
  ...[
    { Binds: [`/tmp/${LONG}:/x`] },
    { Binds: [`/tmp/${NUL}:/x`] },
    { Binds: ['/dev/null/x:/x'] },
    { Binds: [`/etc:/${LONG}`] },
    { Mounts: [{ Type: 'bind', Source: `/tmp/${LONG}`, Target: '/x' }] },
    { Mounts: [{ Type: 'bind', Source: '/dev/null/x', Target: '/x' }] },
    { Devices: [{ PathOnHost: `/dev/${LONG}`, PathInContainer: '/dev/x', CgroupPermissions: 'r' }] },
    { Devices: [{ PathOnHost: '/dev/null/x', PathInContainer: '/dev/x', CgroupPermissions: 'r' }] },
    { Sysctls: { 'net.no.such': '1' } },
    { Sysctls: { 'net.ipv4.ip_forward': LONG } },
    ...['{', 'null', '[1]', '{"syscalls":1}', '{"syscalls":[null]}', '{"defaultAction":"x"}'].map((profile) => ({
      SecurityOpt: [`seccomp=${profile}`],
    })),
    { SecurityOpt: [`apparmor=${LONG}`] },
    { Tmpfs: { '/x': 'size=soon' } },
    { LogConfig: { Type: 'syslog', Config: { 'syslog-address': 'udp://%zz' } } },
    { LogConfig: { Type: 'syslog', Config: { 'syslog-address': 'tcp://127.0.0.1:1' } } },
    { LogConfig: { Type: 'syslog', Config: { 'syslog-address': `unix:///${LONG}` } } },
    { LogConfig: { Type: 'gelf', Config: { 'gelf-address': `udp://${LONG}:1` } } },
    { LogConfig: { Type: 'fluentd', Config: { 'fluentd-address': '127.0.0.1:1' } } },
    { CgroupParent: `/${LONG}` },
    { Ulimits: [{ Name: 'nofile', Soft: 1e12, Hard: 1e12 }] },
    { ExtraHosts: [`${LONG}:%zz`] },
    { Dns: ['%zz'] },
    { PidMode: 'container:none' },
    { RestartPolicy: { Name: NUL } },
    { Runtime: LONG },
    { VolumeDriver: LONG },
    { PortBindings: { '80/tcp': [{ HostIp: '9.9.9.9', HostPort: '80' }] } },
  ].map((HostConfig) => ({ HostConfig })),
];
const heads: readonly string[] = [
  'FOO / HTTP/1.1\r\nHost: x\r\n\r\n',
  '\u0000\u0001\r\n\r\n',
  'GET / HTTP/9.9\r\n\r\n',
  'GET / FTP/1.1\r\n\r\n',
  'GET /a b HTTP/1.1\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n',
  'GET / HTTP/1.1\nHost: x\n\n',
  `GET / HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(100_000)}\r\n\r\n`,
  `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  'POST /containers/create HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\nzz\r\n',
  'POST /containers/create HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: x\r\nContent-Length: 1\r\n\r\n',
];

suite('no answer has words of the kernel or of a parser', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'none' } }, 'target');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** The answer as text: a refusal, or what a stream tells. */
  async function answerTo([request, body, headers = {}]: Row): Promise<string> {
    const [method = '', path = ''] = request.split(' ');
    const sent = typeof body === 'string' ? Buffer.from(body) : body;
    const type = typeof body === 'string' ? { 'Content-Type': 'application/json' } : {};
    const { raw } = await engine.request(method, path, { body: sent, headers: { ...type, ...headers } });
    return raw.toString();
  }

  function check(what: string, answer: string): void {
    assert.equal(internalWord(answer), undefined, `${what.slice(0, 300)}: ${answer.slice(0, 600)}`);
  }

  for (const [name, rows] of Object.entries({ malformed, addresses })) {
    test(`requests with ${name} values`, async () => {
      for (const row of rows) check(JSON.stringify(row), await answerTo(row));
    });
  }

  test('containers that cannot be created or started', async () => {
    for (const settings of containers) {
      const body = { Image: 'busybox', Cmd: ['true'], ...settings };
      const created = await engine.post<{ Id?: string; message?: string }>('/containers/create', body);
      check(JSON.stringify(settings), created.raw.toString());
      if (created.body.Id === undefined) continue;
      check(JSON.stringify(settings), await answerTo([`POST /containers/${created.body.Id}/start`]));
      await engine.delete(`/containers/${created.body.Id}?force=1&v=1`);
    }
  });

  test('heads and bodies that are no HTTP', async () => {
    for (const head of heads) {
      const socket = connect({ path: engine.socketPath, allowHalfOpen: true });
      await once(socket, 'connect');
      const session = new Session(socket);
      socket.end(head);
      await session.ended;
      check(head, session.text);
    }
  });
});
