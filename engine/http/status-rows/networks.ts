import { filters, unknown, missing, NOT_BUILT, type StatusRows } from './row.ts';

export const networkRows = {
  'GET /networks': {
    statuses: [200, 500],
    cases: [
      [200, 'a list', '/networks'],
      [400, 'an unknown filter', `/networks?${filters({ colour: ['red'] })}`],
      [400, 'an unknown type', `/networks?${filters({ type: ['strange'] })}`],
    ],
  },
  'GET /networks/{id}': {
    statuses: [200, 404, 500],
    cases: [[200, 'a network', '/networks/bridge'], unknown('/networks/nope')],
  },
  'POST /networks/create': {
    statuses: [201, 403, 404, 500],
    never: NOT_BUILT,
    cases: [
      missing('/networks/create', { body: { Name: 'mine' } }),
      [403, 'a predefined name', '/networks/create', { body: { Name: 'bridge' } }],
      [400, 'no name', '/networks/create', { body: {} }],
    ],
  },
  'POST /networks/{id}/connect': {
    statuses: [200, 403, 404, 500],
    never: NOT_BUILT,
    cases: [
      missing('/networks/bridge/connect', { body: { Container: 'running' } }),
      [403, 'no containers join it so', '/networks/host/connect', { body: { Container: 'running' } }],
      unknown('/networks/nope/connect', { body: { Container: 'running' } }),
    ],
  },
  'POST /networks/{id}/disconnect': {
    statuses: [200, 403, 404, 500],
    never: NOT_BUILT,
    cases: [
      missing('/networks/bridge/disconnect', { body: { Container: 'running' } }),
      [403, 'no containers leave it so', '/networks/host/disconnect', { body: { Container: 'running' } }],
      unknown('/networks/nope/disconnect', { body: { Container: 'running' } }),
    ],
  },
  'DELETE /networks/{id}': {
    statuses: [204, 403, 404, 500],
    never: { 204: 'there are only the predefined ones yet' },
    cases: [[403, 'a predefined one', '/networks/bridge'], unknown('/networks/nope')],
  },
} as const satisfies StatusRows;
