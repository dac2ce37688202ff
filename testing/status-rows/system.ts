import { TEXT, filters, type StatusRows } from './row.ts';

export const systemRows = {
  'GET /info': { statuses: [200, 500], cases: [[200, 'the system', '/info']] },
  'GET /version': { statuses: [200, 500], cases: [[200, 'the version', '/version']] },
  'GET /_ping': { statuses: [200, 500], cases: [[200, 'it is there', '/_ping', { type: TEXT }]] },
  'GET /events': {
    statuses: [200, 400, 500],
    cases: [
      [200, 'live', '/events', { eras: { '1.52': { type: 'application/jsonl' } } }],
      [400, 'an invalid time', '/events?since=yesterday'],
      [400, 'an end before the beginning', '/events?since=20&until=10'],
      [400, 'filters that are not JSON', '/events?filters=%7B'],
      [400, 'an unknown filter', `/events?${filters({ colour: ['red'] })}`],
    ],
  },
} as const satisfies StatusRows;
