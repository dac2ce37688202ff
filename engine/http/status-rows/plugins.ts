import { missing, NOT_BUILT, type StatusRows } from './row.ts';

export const pluginRows = {
  'GET /plugins': { statuses: [200, 500], never: NOT_BUILT, cases: [missing('/plugins')] },
  'POST /plugins/pull': {
    statuses: [200, 500],
    never: NOT_BUILT,
    cases: [missing('/plugins/pull?name=a/b')],
  },
  'GET /plugins/{name}': {
    statuses: [200, 404],
    never: NOT_BUILT,
    cases: [missing('/plugins/a/b:latest')],
  },
  'POST /plugins/{name}/enable': {
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/plugins/a/b/enable')],
  },
  'POST /plugins/{name}/disable': {
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/plugins/a/b/disable')],
  },
  'DELETE /plugins/{name}': {
    statuses: [200, 404, 500],
    never: NOT_BUILT,
    cases: [missing('/plugins/a/b')],
  },
} as const satisfies StatusRows;
