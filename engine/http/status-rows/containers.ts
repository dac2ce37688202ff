import { type Extra, JSON_TYPE, TEXT, filters, unknown, missing, NOT_BUILT, type StatusRows } from './row.ts';

const create = (fields: Record<string, unknown>): Extra => ({ body: { Image: 'busybox', Cmd: ['true'], ...fields } });
const host = (fields: Record<string, unknown>): Extra => create({ HostConfig: fields });

export const containerRows = {
  'GET /containers/json': {
    statuses: [200, 400, 500],
    cases: [
      [200, 'a list', '/containers/json?all=1'],
      [200, 'an empty value is the default', '/containers/json?all=&limit=&filters='],
      [400, 'no boolean', '/containers/json?all=perhaps'],
      [400, 'no integer', '/containers/json?limit=many'],
      [400, 'filters that are no JSON', '/containers/json?filters=%7B'],
      [400, 'filters that are a list', `/containers/json?${filters(['status'])}`],
      [400, 'an unknown filter', `/containers/json?${filters({ colour: ['red'] })}`],
      [400, 'an unknown status', `/containers/json?${filters({ status: ['gone'] })}`],
      [400, 'an exit code that is no number', `/containers/json?${filters({ exited: ['x'] })}`],
      [400, 'an unknown container in before', `/containers/json?${filters({ before: ['nope'] })}`],
    ],
  },
  'POST /containers/create': {
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
      [400, 'an unknown signal', '/containers/create', create({ StopSignal: 'SIGNOPE' })],
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
      [400, 'an unknown restart policy', '/containers/create', host({ RestartPolicy: { Name: 'often' } })],
      [400, 'an unknown log driver', '/containers/create', host({ LogConfig: { Type: 'nope' } })],
      [400, 'an unknown capability', '/containers/create', host({ CapAdd: ['NOPE'] })],
      [400, 'an unknown runtime', '/containers/create', host({ Runtime: 'nope' })],
      [404, 'there is no such image', '/containers/create', { body: { Image: 'nope' } }],
      [409, 'the name is taken', '/containers/create?name=running', create({})],
    ],
  },
  'GET /containers/{id}/json': {
    statuses: [200, 404, 500],
    cases: [
      [200, 'by its name', '/containers/running/json'],
      [200, 'with its sizes', '/containers/running/json?size=1'],
      [400, 'no boolean', '/containers/running/json?size=big'],
      unknown('/containers/nope/json'),
    ],
  },
  'GET /containers/{id}/top': {
    statuses: [200, 404, 500],
    cases: [
      [200, 'its processes', '/containers/running/top'],
      unknown('/containers/nope/top'),
      [500, 'it does not run', '/containers/stopped/top'],
      [500, 'arguments that ps refuses', '/containers/running/top?ps_args=--nope'],
    ],
  },
  'GET /containers/{id}/stats': {
    statuses: [200, 404, 500],
    cases: [
      [200, 'one sample', '/containers/running/stats?stream=0'],
      [200, 'of one that has ended', '/containers/stopped/stats?stream=false'],
      [400, 'no boolean', '/containers/running/stats?stream=perhaps'],
      unknown('/containers/nope/stats'),
      unknown('/containers/nope/stats?stream=0'),
    ],
  },
  'POST /containers/{id}/update': {
    statuses: [200, 400, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/update', { body: {} })],
  },
  'POST /containers/{id}/rename': {
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
  'DELETE /containers/{id}': {
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
} as const satisfies StatusRows;
