/** A request as Traefik, Portainer, Watchtower and lazydocker send it; `{exec}` is the last exec, `{now}` a UNIX time. */
export type RawCall = Readonly<{
  line: string;
  body?: unknown;
  /** A deliberate difference of the status or the message. */
  chosen?: string;
}>;

const call = (line: string, body?: unknown): RawCall => ({ line, ...(body !== undefined && { body }) });
const unlike = (chosen: string, line: string): RawCall => ({ line, chosen });
const filtered = (path: string, filters: unknown): RawCall =>
  call(`GET ${path}${path.includes('?') ? '&' : '?'}filters=${encodeURIComponent(JSON.stringify(filters))}`);

const WEB = {
  Image: 'busybox',
  Cmd: ['sh', '-c', 'echo out; exec httpd -f -p 80'],
  Labels: { 'traefik.enable': 'true' },
  ExposedPorts: { '80/tcp': {} },
  Healthcheck: { Test: ['CMD', 'true'], Interval: 3_600_000_000_000 },
  HostConfig: {
    NetworkMode: 'net1',
    PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '18080' }] },
    Binds: ['vol1:/v'],
    RestartPolicy: { Name: 'unless-stopped' },
  },
  NetworkingConfig: { EndpointsConfig: { net1: { Aliases: ['w'] } } },
};
const TERMINAL = { AttachStdout: true, Tty: true };

/** In this order: each one finds what the others before it have made. */
export const RAW_CALLS: readonly RawCall[] = [
  ...['GET /_ping', 'HEAD /_ping', 'GET /version', 'GET /info'].map((line) => call(line)),
  call('POST /networks/create', { Name: 'net1', Labels: { a: 'b' }, IPAM: { Config: [{ Subnet: '10.91.0.0/24' }] } }),
  call('POST /volumes/create', { Name: 'vol1', Labels: { a: 'b' } }),
  call('POST /containers/create?name=web', WEB),
  call('POST /containers/create?name=other', { Image: 'nosuch' }),
  ...['POST /containers/web/start', 'POST /containers/web/start'].map((line) => call(line)),
  ...['', '?limit=0', '?all=1&size=1'].map((query) => call(`GET /containers/json${query}`)),
  ...[
    { status: ['running'] },
    { status: { running: true } },
    { label: ['traefik.enable=true'] },
    { network: ['net1'] },
    { volume: ['vol1'] },
    { health: ['healthy', 'starting'] },
    { ancestor: ['busybox'] },
    { name: ['web'] },
    { publish: ['18080'] },
    { expose: ['80/tcp'] },
    { 'is-task': ['false'] },
    { label: ['nosuch'] },
  ].map((filters) => filtered('/containers/json?all=1', filters)),
  ...['json', 'json?size=1', 'stats?stream=false', 'changes'].map((path) => call(`GET /containers/web/${path}`)),
  ...['top', 'top?ps_args=aux'].map((path) => call(`GET /containers/web/${path}`)),
  call('GET /containers/nosuch/json'),
  ...['', '/net1', '/net1?verbose=true&scope=local', '/nosuch'].map((path) => call(`GET /networks${path}`)),
  filtered('/networks', { scope: { swarm: true } }),
  filtered('/networks', { type: ['custom'] }),
  ...['', '/vol1'].map((path) => call(`GET /volumes${path}`)),
  filtered('/volumes', { dangling: ['true'] }),
  ...['/json', '/json?all=1&digests=1', '/busybox/json', '/busybox/history'].map((path) => call(`GET /images${path}`)),
  filtered('/images/json', { reference: ['busy*'] }),
  call('GET /system/df'),
  ...['services', 'tasks', 'nodes', 'swarm', 'secrets', 'configs', 'plugins'].map((path) => call(`GET /${path}`)),
  filtered('/events?since={now}&until={now}', { type: { container: true } }),
  call('POST /containers/web/exec', { ...TERMINAL, Cmd: ['sleep', '1000'] }),
  call('POST /exec/{exec}/start', { Detach: true, Tty: true }),
  ...['POST /exec/{exec}/resize?h=24&w=80', 'GET /exec/{exec}/json'].map((line) => call(line)),
  call('POST /exec/nosuch/start', {}),
  ...['resize?h=10&w=10', 'rename?name=web2'].map((path) => call(`POST /containers/web/${path}`)),
  call('POST /containers/web2/rename?name=web'),
  call('POST /containers/web/update', { Memory: 67_108_864, MemorySwap: 134_217_728 }),
  ...['pause', 'pause', 'unpause', 'kill?signal=CONT'].map((path) => call(`POST /containers/web/${path}`)),
  unlike('a container in the wrong state is 409', 'POST /containers/web/unpause'),
  call('HEAD /containers/web/archive?path=/etc/passwd'),
  ...['restart?t=0', 'stop?t=0', 'stop?t=0', 'wait'].map((path) => call(`POST /containers/web/${path}`)),
  call('POST /commit?container=web&repo=r&tag=t', {}),
  ...['POST /images/r:t/tag?repo=q&tag=1', 'DELETE /images/q:1', 'DELETE /images/r:t'].map((line) => call(line)),
  call('POST /networks/net1/disconnect', { Container: 'web', Force: true }),
  call('POST /networks/net1/connect', {
    Container: 'web',
    EndpointConfig: { IPAMConfig: { IPv4Address: '10.91.0.9' } },
  }),
  ...['web?v=1', 'web'].map((path) => call(`DELETE /containers/${path}`)),
  ...['DELETE /networks/net1', 'DELETE /volumes/vol1', 'DELETE /volumes/vol1'].map((line) => call(line)),
  ...['containers', 'images', 'networks', 'volumes'].map((kind) => call(`POST /${kind}/prune`)),
];
