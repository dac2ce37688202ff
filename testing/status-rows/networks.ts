import { filters, unknown, type StatusRows } from './row.ts';

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
    cases: [
      [201, 'made', '/networks/create', { body: { Name: 'mine' } }],
      [403, 'a predefined name', '/networks/create', { body: { Name: 'bridge' } }],
      [404, 'an unknown driver', '/networks/create', { body: { Name: 'other', Driver: 'nope' }, slow: true }],
      [400, 'no name', '/networks/create', { body: {} }],
      [409, 'the name is taken', '/networks/create', { body: { Name: 'mine', CheckDuplicate: true } }],
    ],
  },
  'POST /networks/{id}/connect': {
    statuses: [200, 403, 404, 500],
    cases: [
      [200, 'connected', '/networks/mine/connect', { body: { Container: 'running' }, type: '' }],
      [403, 'it is in it', '/networks/mine/connect', { body: { Container: 'running' } }],
      [403, 'no containers join it so', '/networks/host/connect', { body: { Container: 'running' } }],
      unknown('/networks/nope/connect', { body: { Container: 'running' } }),
      unknown('/networks/mine/connect', { body: { Container: 'nope' } }),
    ],
  },
  'POST /networks/{id}/disconnect': {
    statuses: [200, 403, 404, 500],
    cases: [
      [200, 'disconnected', '/networks/mine/disconnect', { body: { Container: 'running' }, type: '' }],
      [500, 'it is not in it', '/networks/mine/disconnect', { body: { Container: 'running' } }],
      [403, 'no containers leave it so', '/networks/host/disconnect', { body: { Container: 'running' } }],
      unknown('/networks/nope/disconnect', { body: { Container: 'running' } }),
    ],
  },
  'DELETE /networks/{id}': {
    statuses: [204, 403, 404, 500],
    cases: [
      [204, 'removed', '/networks/mine'],
      [403, 'a predefined one', '/networks/bridge'],
      unknown('/networks/nope'),
    ],
  },
} as const satisfies StatusRows;
