import { filters, JSON_TYPE, unknown, type StatusRows } from './row.ts';

export const volumeRows = {
  'GET /volumes': {
    statuses: [200, 500],
    cases: [
      [200, 'a list', '/volumes'],
      [400, 'an unknown filter', `/volumes?${filters({ colour: ['red'] })}`],
      [400, 'a filter that is not a boolean', `/volumes?${filters({ dangling: ['perhaps'] })}`],
    ],
  },
  'POST /volumes/create': {
    statuses: [201, 500],
    cases: [
      [201, 'made', '/volumes/create', { body: { Name: 'made' } }],
      [201, 'it is there', '/volumes/create', { body: { Name: 'used' } }],
      [400, 'a body that is not JSON', '/volumes/create', { body: '{', headers: JSON_TYPE }],
      [500, 'an unknown driver', '/volumes/create', { body: { Name: 'x', Driver: 'nope' }, slow: true }],
      [400, 'an invalid name', '/volumes/create', { body: { Name: '../x' } }],
      [
        400,
        'an option without another one that it needs',
        '/volumes/create',
        { body: { Name: 'x', DriverOpts: { type: 'nfs' } } },
      ],
    ],
  },
  'GET /volumes/{name}': {
    statuses: [200, 404, 500],
    cases: [[200, 'a volume', '/volumes/used'], unknown('/volumes/nope')],
  },
  'DELETE /volumes/{name}': {
    statuses: [204, 404, 409, 500],
    cases: [
      [204, 'removed', '/volumes/unused'],
      unknown('/volumes/nope'),
      [409, 'a container uses it', '/volumes/used'],
    ],
  },
} as const satisfies StatusRows;
