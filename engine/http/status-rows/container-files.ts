import { missing, NOT_BUILT, type StatusRows } from './row.ts';

export const containerFileRows = {
  'GET /containers/{id}/changes': {
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/changes')],
  },
  'GET /containers/{id}/export': {
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/export')],
  },
  'HEAD /containers/{id}/archive': {
    statuses: [],
    cases: [missing('/containers/running/archive?path=/etc')],
  },
  'GET /containers/{id}/archive': {
    statuses: [200, 400, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/archive?path=/etc')],
  },
  'PUT /containers/{id}/archive': {
    statuses: [200, 400, 403, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/containers/running/archive?path=/etc', { body: Buffer.alloc(1024) })],
  },
} as const satisfies StatusRows;
