import { TAR, unknown, type StatusRows } from './row.ts';

export const containerFileRows = {
  'GET /containers/{id}/changes': {
    statuses: [200, 404, 500],
    cases: [[200, 'nothing or something', '/containers/running/changes'], unknown('/containers/nobody/changes')],
  },
  'GET /containers/{id}/export': {
    statuses: [200, 404, 500],
    cases: [
      [200, 'its root', '/containers/stopped/export', { type: 'application/octet-stream' }],
      unknown('/containers/nobody/export'),
    ],
  },
  'HEAD /containers/{id}/archive': {
    statuses: [200, 400, 404, 500], // the specification does not show them; those of GET
    cases: [
      [200, 'a folder', '/containers/running/archive?path=/etc', { type: '' }],
      [400, 'no path', '/containers/running/archive'],
      [404, 'there is no such file', '/containers/running/archive?path=/nowhere'],
      unknown('/containers/nobody/archive?path=/etc'),
    ],
  },
  'GET /containers/{id}/archive': {
    statuses: [200, 400, 404, 500],
    cases: [
      [200, 'a folder', '/containers/running/archive?path=/etc', { type: TAR }],
      [400, 'no path', '/containers/running/archive'],
      [400, 'a file whose path ends in a slash', '/containers/running/archive?path=/etc/passwd/'],
      [404, 'there is no such file', '/containers/running/archive?path=/nowhere'],
      unknown('/containers/nobody/archive?path=/etc'),
    ],
  },
  'PUT /containers/{id}/archive': {
    statuses: [200, 400, 403, 404, 500],
    cases: [
      [200, 'an empty archive', '/containers/running/archive?path=/etc', { body: Buffer.alloc(1024), type: '' }],
      [400, 'no path', '/containers/running/archive', { body: Buffer.alloc(1024) }],
      [400, 'a file as the place', '/containers/running/archive?path=/etc/passwd', { body: Buffer.alloc(1024) }],
      [400, 'no archive', '/containers/running/archive?path=/etc', { body: Buffer.alloc(1024, 'x') }],
      [403, 'its root is read-only', '/containers/read-only/archive?path=/etc', { body: Buffer.alloc(1024) }],
      [404, 'no such folder', '/containers/running/archive?path=/nowhere', { body: Buffer.alloc(1024) }],
      unknown('/containers/nobody/archive?path=/etc', { body: Buffer.alloc(1024) }),
    ],
  },
} as const satisfies StatusRows;
