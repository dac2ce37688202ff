import type { HTTPMethods } from 'fastify';

/** What a request of the table has beside its method and path. */
export type Extra = {
  /** A text or bytes go out as they are, anything else as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  /** The content type of a success that is not JSON. */
  type?: string;
  /** A refusal that leaves its mark: a start that failed is told by inspect and events. */
  changes?: true;
};

/** The status, why it is that one, and the path that brings it about; `{exec}` and so on stand for ids of the world. */
export type Case = readonly [status: number, why: string, path: string, extra?: Extra];

export type Endpoint = {
  method: HTTPMethods;
  /** As in docs/compatibility.md. */
  path: string;
  /** As the specification lists them. */
  statuses: readonly number[];
  cases: readonly Case[];
  /** What the specification lists and no request brings about, with the reason. A 500 needs none: it is a failure. */
  never?: Readonly<Record<number, string>>;
};

const JSON_TYPE = { 'Content-Type': 'application/json' };
const UPGRADE = { Connection: 'Upgrade', Upgrade: 'tcp' };
const RAW = 'application/vnd.engine.raw-stream';
const TEXT = 'text/plain';
const TAR = 'application/x-tar';
const SOCKET = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

const create = (fields: Record<string, unknown>): Extra => ({ body: { Image: 'busybox', Cmd: ['true'], ...fields } });
const host = (fields: Record<string, unknown>): Extra => create({ HostConfig: fields });
const filters = (value: unknown): string => `filters=${encodeURIComponent(JSON.stringify(value))}`;

/** A path whose container, image … there is not, and the answer to it. */
const unknown = (path: string, extra?: Extra): Case => [404, 'there is no such object', path, extra];
/** Nothing can make this daemon a member of a cluster yet. */
const outside = (path: string, extra?: Extra): Case => [406, 'the node is in no cluster', path, extra];
const missing = (path: string, extra?: Extra): Case => [501, 'it is not built yet', path, extra];

const NO_CLUSTER = {
  200: 'there is no cluster yet',
  201: 'there is no cluster yet',
  400: 'there is no cluster yet',
  403: 'there is no cluster yet',
  404: 'there is no cluster yet',
  406: 'there is no cluster yet',
  409: 'there is no cluster yet',
};
const NOT_BUILT = {
  200: 'not built yet',
  201: 'not built yet',
  204: 'not built yet',
  400: 'not built yet',
  403: 'not built yet',
  404: 'not built yet',
};

/** Every endpoint of the specification, in its order: the statuses that it lists, and requests that bring them about. */
export const ENDPOINTS: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/containers/json',
    statuses: [200, 400, 500],
    cases: [
      [200, 'a list', '/containers/json?all=1'],
      [200, 'an empty value is the default', '/containers/json?all=&limit=&filters='],
      [400, 'no boolean', '/containers/json?all=perhaps'],
      [400, 'no integer', '/containers/json?limit=many'],
      [400, 'filters that are no JSON', '/containers/json?filters=%7B'],
      [400, 'filters that are a list', `/containers/json?${filters(['status'])}`],
      [400, 'a filter that there is not', `/containers/json?${filters({ colour: ['red'] })}`],
      [400, 'a status that there is not', `/containers/json?${filters({ status: ['gone'] })}`],
      [400, 'an exit code that is no number', `/containers/json?${filters({ exited: ['x'] })}`],
      [400, 'a container before that there is not', `/containers/json?${filters({ before: ['nope'] })}`],
    ],
  },
  {
    method: 'POST',
    path: '/containers/create',
    statuses: [201, 400, 404, 406, 409, 500],
    never: { 406: 'a creation attaches nothing, so it can always be done' },
    cases: [
      [201, 'made', '/containers/create', create({})],
      [201, 'a name may begin with _ and -', '/containers/create?name=_-made', create({})],
      [201, 'a name may have its slash', '/containers/create?name=/slashed', create({})],
      [201, 'a name may have dots inside', '/containers/create?name=a.b', create({})],
      [400, 'a dot at the beginning of the name', '/containers/create?name=.b', create({})],
      [400, 'a slash inside of the name', '/containers/create?name=a/b', create({})],
      [400, 'no image', '/containers/create', { body: {} }],
      [400, 'no body', '/containers/create', { headers: JSON_TYPE }],
      [400, 'a body that is no JSON', '/containers/create', { body: '{"Image":', headers: JSON_TYPE }],
      [
        400,
        'a body that is not said to be JSON',
        '/containers/create',
        { body: '{}', headers: { 'Content-Type': TEXT } },
      ],
      [400, 'a body of more than 8 MB', '/containers/create', create({ Domainname: 'x'.repeat(9 << 20) })],
      [400, 'a wrong type', '/containers/create', create({ Tty: 'yes' })],
      [400, 'a hostname that is none', '/containers/create', create({ Hostname: 'a b' })],
      [400, 'a variable without a name', '/containers/create', create({ Env: ['=x'] })],
      [400, 'a signal that there is not', '/containers/create', create({ StopSignal: 'SIGNOPE' })],
      [400, 'a health check each nanosecond', '/containers/create', create({ Healthcheck: { Interval: 1 } })],
      [400, 'a port that is none', '/containers/create', create({ ExposedPorts: { 'web/tcp': {} } })],
      [
        400,
        'a host port that is none',
        '/containers/create',
        host({ PortBindings: { '80/tcp': [{ HostPort: 'x' }] } }),
      ],
      [400, 'a relative destination', '/containers/create', host({ Binds: ['/tmp:there'] })],
      [400, 'a weight below 10', '/containers/create', host({ BlkioWeight: 5 })],
      [400, 'a swappiness above 100', '/containers/create', host({ MemorySwappiness: 101 })],
      [400, 'swap that is less than the memory', '/containers/create', host({ Memory: 64 << 20, MemorySwap: 1 << 20 })],
      [400, 'shared memory below 0', '/containers/create', host({ ShmSize: -1 })],
      [400, 'a restart policy that there is not', '/containers/create', host({ RestartPolicy: { Name: 'often' } })],
      [400, 'a log driver that there is not', '/containers/create', host({ LogConfig: { Type: 'nope' } })],
      [400, 'a capability that there is not', '/containers/create', host({ CapAdd: ['NOPE'] })],
      [400, 'a runtime that there is not', '/containers/create', host({ Runtime: 'nope' })],
      [404, 'there is no such image', '/containers/create', { body: { Image: 'nope' } }],
      [409, 'the name is taken', '/containers/create?name=running', create({})],
    ],
  },
  {
    method: 'GET',
    path: '/containers/{id}/json',
    statuses: [200, 404, 500],
    cases: [
      [200, 'by its name', '/containers/running/json'],
      [200, 'with its sizes', '/containers/running/json?size=1'],
      [400, 'no boolean', '/containers/running/json?size=big'],
      unknown('/containers/nope/json'),
    ],
  },
  {
    method: 'GET',
    path: '/containers/{id}/top',
    statuses: [200, 404, 500],
    cases: [
      [200, 'its processes', '/containers/running/top'],
      unknown('/containers/nope/top'),
      [500, 'it does not run', '/containers/stopped/top'],
      [500, 'arguments that ps refuses', '/containers/running/top?ps_args=--nope'],
    ],
  },
  {
    method: 'GET',
    path: '/containers/{id}/logs',
    statuses: [101, 200, 404, 500],
    cases: [
      [101, 'with an upgrade', '/containers/running/logs?stdout=1', { headers: UPGRADE, type: RAW }],
      [200, 'without', '/containers/running/logs?stdout=1', { type: RAW }],
      [400, 'neither stream', '/containers/running/logs'],
      [400, 'a time that is none', '/containers/running/logs?stdout=1&since=yesterday'],
      unknown('/containers/nope/logs?stdout=1'),
      [500, 'its log driver keeps nothing', '/containers/silent/logs?stdout=1'],
    ],
  },
  {
    method: 'GET',
    path: '/containers/{id}/changes',
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/changes')],
  },
  {
    method: 'GET',
    path: '/containers/{id}/export',
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/export')],
  },
  {
    method: 'GET',
    path: '/containers/{id}/stats',
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/stats')],
  },
  {
    method: 'POST',
    path: '/containers/{id}/resize',
    statuses: [200, 404, 500],
    cases: [
      [200, 'resized', '/containers/terminal/resize?h=20&w=60', { type: TEXT }],
      [400, 'no width', '/containers/terminal/resize?h=20'],
      [400, 'a height that is none', '/containers/terminal/resize?h=tall&w=60'],
      unknown('/containers/nope/resize?h=20&w=60'),
      [500, 'it does not run', '/containers/stopped/resize?h=20&w=60'],
    ],
  },
  {
    method: 'POST',
    path: '/containers/{id}/start',
    statuses: [204, 304, 404, 500],
    cases: [
      [204, 'started', '/containers/to-start/start'],
      [304, 'it runs', '/containers/running/start'],
      unknown('/containers/nope/start'),
      [500, 'it is paused', '/containers/paused/start'],
      [500, 'its command is missing', '/containers/broken/start', { changes: true }],
    ],
  },
  {
    method: 'POST',
    path: '/containers/{id}/stop',
    statuses: [204, 304, 404, 500],
    cases: [
      [204, 'stopped', '/containers/to-stop/stop?t=0'],
      [304, 'it has ended', '/containers/stopped/stop'],
      [304, 'it was never started', '/containers/created/stop'],
      [400, 'no integer', '/containers/running/stop?t=soon'],
      unknown('/containers/nope/stop'),
    ],
  },
  {
    method: 'POST',
    path: '/containers/{id}/restart',
    statuses: [204, 404, 500],
    cases: [
      [204, 'restarted', '/containers/to-restart/restart?t=0'],
      [400, 'no integer', '/containers/running/restart?t=soon'],
      unknown('/containers/nope/restart'),
      [500, 'its command is missing', '/containers/broken/restart', { changes: true }],
    ],
  },
  {
    method: 'POST',
    path: '/containers/{id}/kill',
    statuses: [204, 404, 500],
    cases: [
      [204, 'killed', '/containers/to-kill/kill'],
      [400, 'a signal that there is not', '/containers/running/kill?signal=NOPE'],
      unknown('/containers/nope/kill'),
      [500, 'it does not run', '/containers/stopped/kill'],
    ],
  },
  {
    method: 'POST',
    path: '/containers/{id}/update',
    statuses: [200, 400, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/update', { body: {} })],
  },
  {
    method: 'POST',
    path: '/containers/{id}/rename',
    statuses: [204, 404, 409, 500],
    cases: [
      [204, 'renamed', '/containers/to-rename/rename?name=_re.named'],
      [400, 'no name', '/containers/running/rename'],
      [400, 'a dot at the beginning of the name', '/containers/running/rename?name=.b'],
      unknown('/containers/nope/rename?name=other'),
      [409, 'the name is taken', '/containers/running/rename?name=stopped'],
      [409, 'it is its own name', '/containers/running/rename?name=running'],
    ],
  },
  {
    method: 'POST',
    path: '/containers/{id}/pause',
    statuses: [204, 404, 500],
    cases: [
      [204, 'paused', '/containers/to-pause/pause'],
      unknown('/containers/nope/pause'),
      [500, 'it does not run', '/containers/stopped/pause'],
      [500, 'it is paused', '/containers/paused/pause'],
    ],
  },
  {
    method: 'POST',
    path: '/containers/{id}/unpause',
    statuses: [204, 404, 500],
    cases: [
      [204, 'it goes on', '/containers/to-pause/unpause'],
      unknown('/containers/nope/unpause'),
      [500, 'it does not run', '/containers/stopped/unpause'],
      [500, 'it is not paused', '/containers/running/unpause'],
    ],
  },
  {
    method: 'POST',
    path: '/containers/{id}/attach',
    statuses: [101, 200, 400, 404, 409, 500],
    cases: [
      [101, 'with an upgrade', '/containers/running/attach?stream=1&stdout=1', { headers: UPGRADE, type: RAW }],
      [200, 'without', '/containers/running/attach?stream=1&stdout=1', { type: RAW }],
      [400, 'keys that there are not', '/containers/running/attach?stream=1&stdout=1&detachKeys=ctrl-1'],
      [400, 'no boolean', '/containers/running/attach?stream=perhaps'],
      [400, 'the same with an upgrade', '/containers/running/attach?stream=perhaps', { headers: UPGRADE }],
      unknown('/containers/nope/attach?stream=1&stdout=1'),
      unknown('/containers/nope/attach?stream=1&stdout=1', { headers: UPGRADE }),
      [409, 'it is paused', '/containers/paused/attach?stream=1&stdout=1'],
    ],
  },
  {
    method: 'GET',
    path: '/containers/{id}/attach/ws',
    statuses: [200, 400, 404, 500],
    never: { 200: 'a WebSocket begins with 101' },
    cases: [
      [101, 'a WebSocket begins so', '/containers/running/attach/ws?stream=1&stdout=1', { headers: SOCKET, type: '' }],
      [400, 'keys that there are not', '/containers/running/attach/ws?detachKeys=ctrl-1', { headers: SOCKET }],
      [400, 'no WebSocket', '/containers/running/attach/ws?stream=1&stdout=1'],
      unknown('/containers/nope/attach/ws?stream=1', { headers: SOCKET }),
    ],
  },
  {
    method: 'POST',
    path: '/containers/{id}/wait',
    statuses: [200, 404, 500],
    cases: [[200, 'it has ended', '/containers/stopped/wait'], unknown('/containers/nope/wait')],
  },
  {
    method: 'DELETE',
    path: '/containers/{id}',
    statuses: [204, 400, 404, 409, 500],
    cases: [
      [204, 'removed', '/containers/to-remove?v=1'],
      [400, 'no boolean', '/containers/stopped?force=perhaps'],
      unknown('/containers/nope'),
      unknown('/containers/nope?force=1'),
      unknown('/containers/running/alias?link=1'),
      [409, 'it runs', '/containers/running'],
      [409, 'it is paused', '/containers/paused'],
      [500, 'a container is no link', '/containers/stopped?link=1'],
    ],
  },
  {
    method: 'HEAD',
    path: '/containers/{id}/archive',
    statuses: [],
    cases: [missing('/containers/running/archive?path=/etc')],
  },
  {
    method: 'GET',
    path: '/containers/{id}/archive',
    statuses: [200, 400, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/archive?path=/etc')],
  },
  {
    method: 'PUT',
    path: '/containers/{id}/archive',
    statuses: [200, 400, 403, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/archive?path=/etc', { body: Buffer.alloc(1024) })],
  },
  {
    method: 'POST',
    path: '/containers/{id}/exec',
    statuses: [201, 404, 409, 500],
    cases: [
      [201, 'made', '/containers/running/exec', { body: { Cmd: ['true'] } }],
      [400, 'no command', '/containers/running/exec', { body: {} }],
      [400, 'a body that is no JSON', '/containers/running/exec', { body: 'true', headers: { 'Content-Type': TEXT } }],
      [400, 'a wrong type', '/containers/running/exec', { body: { Cmd: 5 } }],
      [400, 'keys that there are not', '/containers/running/exec', { body: { Cmd: ['true'], DetachKeys: 'ctrl-1' } }],
      unknown('/containers/nope/exec', { body: { Cmd: ['true'] } }),
      [409, 'the container is paused', '/containers/paused/exec', { body: { Cmd: ['true'] } }],
      [409, 'the container does not run', '/containers/stopped/exec', { body: { Cmd: ['true'] } }],
    ],
  },
  {
    method: 'POST',
    path: '/exec/{id}/start',
    statuses: [200, 404, 409],
    cases: [
      [200, 'with its output', '/exec/{exec-attached}/start', { body: {}, type: RAW }],
      [200, 'without', '/exec/{exec-detached}/start', { body: { Detach: true }, type: '' }],
      [400, 'a wrong type', '/exec/{exec}/start', { body: { Detach: 'yes' } }],
      unknown('/exec/nope/start', { body: {} }),
      unknown('/exec/nope/start', { body: {}, headers: UPGRADE }),
      [409, 'the container is paused', '/exec/{exec-paused}/start', { body: {} }],
      [409, 'it has run', '/exec/{exec-ended}/start', { body: {} }],
    ],
  },
  {
    method: 'POST',
    path: '/exec/{id}/resize',
    statuses: [201, 404],
    cases: [
      [201, 'its first size', '/exec/{exec}/resize?h=20&w=60', { type: TEXT }],
      [400, 'no height', '/exec/{exec}/resize?w=60'],
      unknown('/exec/nope/resize?h=20&w=60'),
      [404, 'it has ended', '/exec/{exec-ended}/resize?h=20&w=60'],
    ],
  },
  {
    method: 'GET',
    path: '/exec/{id}/json',
    statuses: [200, 404, 500],
    cases: [[200, 'an exec', '/exec/{exec}/json'], unknown('/exec/nope/json')],
  },
  {
    method: 'GET',
    path: '/images/json',
    statuses: [200, 500],
    cases: [
      [200, 'a list', '/images/json?digests=1'],
      [400, 'no boolean', '/images/json?all=perhaps'],
      [400, 'a filter that there is not', `/images/json?${filters({ colour: ['red'] })}`],
      [400, 'a filter that is no boolean', `/images/json?${filters({ dangling: ['perhaps'] })}`],
      unknown(`/images/json?${filters({ before: ['nope'] })}`),
    ],
  },
  {
    method: 'POST',
    path: '/build',
    statuses: [200, 500],
    never: NOT_BUILT,
    cases: [missing('/build', { body: Buffer.alloc(1024) })],
  },
  {
    method: 'POST',
    path: '/images/create',
    statuses: [200, 404, 500],
    never: { 404: 'only a pull looks for a repository' },
    cases: [
      [200, 'an import', '/images/create?fromSrc=-&repo=imported', { body: Buffer.alloc(1024) }],
      [400, 'neither source', '/images/create'],
      [400, 'a name that is none', '/images/create?fromSrc=-&repo=UPPER', { body: Buffer.alloc(1024) }],
      [400, 'an instruction that there is not', '/images/create?fromSrc=-&changes=JUMP', { body: Buffer.alloc(1024) }],
      [400, 'a source that is no address', '/images/create?fromSrc=ftp://there/x'],
      [400, 'no archive', '/images/create?fromSrc=-', { body: Buffer.alloc(1024, 'x') }],
      [500, 'nobody answers there', '/images/create?fromSrc=http://127.0.0.1:9/x'],
      [501, 'a pull is not built yet', '/images/create?fromImage=busybox&tag=latest'],
      [400, 'a pull of a name that is none', '/images/create?fromImage=UPPER'],
    ],
  },
  {
    method: 'GET',
    path: '/images/{name}/json',
    statuses: [200, 404, 500],
    cases: [[200, 'an image', '/images/busybox:latest/json'], unknown('/images/library/a/nope:1/json')],
  },
  {
    method: 'GET',
    path: '/images/{name}/history',
    statuses: [200, 404, 500],
    cases: [[200, 'its steps', '/images/busybox/history'], unknown('/images/nope/history')],
  },
  {
    method: 'POST',
    path: '/images/{name}/push',
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/images/localhost:5000/a/b/push')],
  },
  {
    method: 'POST',
    path: '/images/{name}/tag',
    statuses: [201, 400, 404, 409, 500],
    never: { 409: 'a name moves to the image, as in dockerd' },
    cases: [
      [201, 'tagged', '/images/busybox/tag?repo=tagged&tag=v1', { type: '' }],
      [400, 'no name', '/images/busybox/tag'],
      [400, 'a name that is none', '/images/busybox/tag?repo=UPPER'],
      [400, 'a tag that is none', '/images/busybox/tag?repo=fine&tag=a/b'],
      unknown('/images/nope/tag?repo=fine'),
    ],
  },
  {
    method: 'DELETE',
    path: '/images/{name}',
    statuses: [200, 404, 409, 500],
    cases: [
      [200, 'a name less', '/images/to-untag'],
      [400, 'no boolean', '/images/busybox?force=perhaps'],
      unknown('/images/nope'),
      [409, 'a container runs on it', '/images/{image}?force=1'],
      [409, 'a container was made of it', '/images/unused-name'],
    ],
  },
  {
    method: 'GET',
    path: '/images/search',
    statuses: [200, 500],
    never: NOT_BUILT,
    cases: [missing('/images/search?term=busybox')],
  },
  {
    method: 'GET',
    path: '/images/{name}/get',
    statuses: [200, 500],
    cases: [[200, 'an archive', '/images/busybox/get', { type: TAR }], unknown('/images/nope/get')],
  },
  {
    method: 'GET',
    path: '/images/get',
    statuses: [200, 500],
    cases: [[200, 'an archive', '/images/get?names=busybox', { type: TAR }], unknown('/images/get?names=nope')],
  },
  {
    method: 'POST',
    path: '/images/load',
    statuses: [200, 500],
    cases: [
      [200, 'loaded', '/images/load?quiet=1', { body: 'busybox' }],
      [400, 'no boolean', '/images/load?quiet=perhaps', { body: Buffer.alloc(1024) }],
      [400, 'no archive', '/images/load', { body: Buffer.alloc(1024, 'x') }],
      [400, 'an archive without images', '/images/load', { body: Buffer.alloc(1024) }],
    ],
  },
  {
    method: 'POST',
    path: '/commit',
    statuses: [201, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/commit?container=running', { body: {} })],
  },
  {
    method: 'POST',
    path: '/auth',
    statuses: [200, 204, 500],
    never: NOT_BUILT,
    cases: [missing('/auth', { body: {} })],
  },
  { method: 'GET', path: '/info', statuses: [200, 500], cases: [[200, 'the system', '/info']] },
  { method: 'GET', path: '/version', statuses: [200, 500], cases: [[200, 'the version', '/version']] },
  { method: 'GET', path: '/_ping', statuses: [200, 500], cases: [[200, 'it is there', '/_ping', { type: TEXT }]] },
  {
    method: 'GET',
    path: '/events',
    statuses: [200, 400, 500],
    cases: [
      [200, 'live', '/events'],
      [400, 'a time that is none', '/events?since=yesterday'],
      [400, 'an end before the beginning', '/events?since=20&until=10'],
      [400, 'filters that are no JSON', '/events?filters=%7B'],
      [400, 'a filter that there is not', `/events?${filters({ colour: ['red'] })}`],
    ],
  },
  {
    method: 'GET',
    path: '/volumes',
    statuses: [200, 500],
    cases: [
      [200, 'a list', '/volumes'],
      [400, 'a filter that there is not', `/volumes?${filters({ colour: ['red'] })}`],
      [400, 'a filter that is no boolean', `/volumes?${filters({ dangling: ['perhaps'] })}`],
    ],
  },
  {
    method: 'POST',
    path: '/volumes/create',
    statuses: [201, 500],
    cases: [
      [201, 'made', '/volumes/create', { body: { Name: 'made' } }],
      [201, 'it is there', '/volumes/create', { body: { Name: 'used' } }],
      [400, 'a body that is no JSON', '/volumes/create', { body: '{', headers: JSON_TYPE }],
      [500, 'a driver that there is not', '/volumes/create', { body: { Name: 'x', Driver: 'nope' } }],
      [400, 'a name that is none', '/volumes/create', { body: { Name: '../x' } }],
      [
        400,
        'an option that the driver has not',
        '/volumes/create',
        { body: { Name: 'x', DriverOpts: { type: 'nfs' } } },
      ],
    ],
  },
  {
    method: 'GET',
    path: '/volumes/{name}',
    statuses: [200, 404, 500],
    cases: [[200, 'a volume', '/volumes/used'], unknown('/volumes/nope')],
  },
  {
    method: 'DELETE',
    path: '/volumes/{name}',
    statuses: [204, 404, 409, 500],
    cases: [
      [204, 'removed', '/volumes/unused'],
      unknown('/volumes/nope'),
      [409, 'a container uses it', '/volumes/used'],
    ],
  },
  {
    method: 'GET',
    path: '/networks',
    statuses: [200, 500],
    cases: [
      [200, 'a list', '/networks'],
      [400, 'a filter that there is not', `/networks?${filters({ colour: ['red'] })}`],
      [400, 'a type that there is not', `/networks?${filters({ type: ['strange'] })}`],
    ],
  },
  {
    method: 'GET',
    path: '/networks/{id}',
    statuses: [200, 404, 500],
    cases: [[200, 'a network', '/networks/bridge'], unknown('/networks/nope')],
  },
  {
    method: 'POST',
    path: '/networks/create',
    statuses: [201, 403, 404, 500],
    never: NOT_BUILT,
    cases: [
      missing('/networks/create', { body: { Name: 'mine' } }),
      [403, 'a predefined name', '/networks/create', { body: { Name: 'bridge' } }],
      [400, 'no name', '/networks/create', { body: {} }],
    ],
  },
  {
    method: 'POST',
    path: '/networks/{id}/connect',
    statuses: [200, 403, 404, 500],
    never: NOT_BUILT,
    cases: [
      missing('/networks/bridge/connect', { body: { Container: 'running' } }),
      [403, 'no containers join it so', '/networks/host/connect', { body: { Container: 'running' } }],
      unknown('/networks/nope/connect', { body: { Container: 'running' } }),
    ],
  },
  {
    method: 'POST',
    path: '/networks/{id}/disconnect',
    statuses: [200, 403, 404, 500],
    never: NOT_BUILT,
    cases: [
      missing('/networks/bridge/disconnect', { body: { Container: 'running' } }),
      [403, 'no containers leave it so', '/networks/host/disconnect', { body: { Container: 'running' } }],
      unknown('/networks/nope/disconnect', { body: { Container: 'running' } }),
    ],
  },
  {
    method: 'DELETE',
    path: '/networks/{id}',
    statuses: [204, 403, 404, 500],
    never: { 204: 'there are only the predefined ones yet' },
    cases: [[403, 'a predefined one', '/networks/bridge'], unknown('/networks/nope')],
  },
  { method: 'GET', path: '/plugins', statuses: [200, 500], never: NOT_BUILT, cases: [missing('/plugins')] },
  {
    method: 'POST',
    path: '/plugins/pull',
    statuses: [200, 500],
    never: NOT_BUILT,
    cases: [missing('/plugins/pull?name=a/b')],
  },
  {
    method: 'GET',
    path: '/plugins/{name}',
    statuses: [200, 404],
    never: NOT_BUILT,
    cases: [missing('/plugins/a/b:latest')],
  },
  {
    method: 'POST',
    path: '/plugins/{name}/enable',
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/plugins/a/b/enable')],
  },
  {
    method: 'POST',
    path: '/plugins/{name}/disable',
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/plugins/a/b/disable')],
  },
  {
    method: 'DELETE',
    path: '/plugins/{name}',
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/plugins/a/b')],
  },
  { method: 'GET', path: '/nodes', statuses: [200, 406, 500], never: NO_CLUSTER, cases: [outside('/nodes')] },
  {
    method: 'GET',
    path: '/nodes/{id}',
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/nodes/self')],
  },
  {
    method: 'DELETE',
    path: '/nodes/{id}',
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/nodes/self?force=1')],
  },
  {
    method: 'POST',
    path: '/nodes/{id}/update',
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/nodes/self/update?version=1', { body: {} })],
  },
  { method: 'GET', path: '/swarm', statuses: [200, 406, 500], never: NO_CLUSTER, cases: [outside('/swarm')] },
  {
    method: 'POST',
    path: '/swarm/init',
    statuses: [200, 400, 406, 500],
    never: NO_CLUSTER,
    cases: [missing('/swarm/init', { body: {} })],
  },
  {
    method: 'POST',
    path: '/swarm/join',
    statuses: [200, 400, 406, 500],
    never: NO_CLUSTER,
    cases: [missing('/swarm/join', { body: {} })],
  },
  {
    method: 'POST',
    path: '/swarm/leave',
    statuses: [200, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/swarm/leave?force=1')],
  },
  {
    method: 'POST',
    path: '/swarm/update',
    statuses: [200, 400, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/swarm/update?version=1', { body: {} })],
  },
  { method: 'GET', path: '/services', statuses: [200, 406, 500], never: NO_CLUSTER, cases: [outside('/services')] },
  {
    method: 'POST',
    path: '/services/create',
    statuses: [201, 403, 406, 409, 500],
    never: NO_CLUSTER,
    cases: [outside('/services/create', { body: { Name: 'web' } })],
  },
  {
    method: 'GET',
    path: '/services/{id}',
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/services/web')],
  },
  {
    method: 'DELETE',
    path: '/services/{id}',
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/services/web')],
  },
  {
    method: 'POST',
    path: '/services/{id}/update',
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/services/web/update?version=1', { body: {} })],
  },
  { method: 'GET', path: '/tasks', statuses: [200, 406, 500], never: NO_CLUSTER, cases: [outside('/tasks')] },
  {
    method: 'GET',
    path: '/tasks/{id}',
    statuses: [200, 404, 406, 500],
    never: NO_CLUSTER,
    cases: [outside('/tasks/one')],
  },
];

/** What no endpoint is asked for: refused in the same form. */
export const OUTSIDE_OF_ENDPOINTS: readonly (readonly [HTTPMethods, ...Case])[] = [
  ['GET', 404, 'no such path', '/nope'],
  ['GET', 404, 'no such path below a container', '/containers/running/nope'],
  ['GET', 404, 'a path of newer clients', '/system/df'],
  ['GET', 404, 'a path of newer clients', '/plugins/x/json'],
  ['GET', 404, 'a path of newer clients', '/distribution/busybox/json'],
  ['POST', 404, 'a path of newer clients', '/session'],
  ['PUT', 404, 'a method that the path has not', '/containers/json'],
  ['GET', 400, 'a version that is too new', '/v1.25/info'],
  ['GET', 400, 'a version that is too old', '/v1.11/info'],
  ['GET', 400, 'a version that is none', '/v2/info'],
  ['GET', 400, 'a name that cannot be decoded', '/containers/%E0%A4%A/json'],
];
