import { unknown, type StatusRows } from './row.ts';

export const containerRunRows = {
  'POST /containers/{id}/start': {
    statuses: [204, 304, 404, 500],
    cases: [
      [204, 'started', '/containers/to-start/start'],
      [304, 'it runs', '/containers/running/start'],
      unknown('/containers/nope/start'),
      [500, 'it is paused', '/containers/paused/start', { newer: 409 }],
      [500, 'its command is missing', '/containers/broken/start', { changes: true }],
    ],
  },
  'POST /containers/{id}/stop': {
    statuses: [204, 304, 404, 500],
    cases: [
      [204, 'stopped', '/containers/to-stop/stop?t=0'],
      [304, 'it has ended', '/containers/stopped/stop'],
      [304, 'it was never started', '/containers/created/stop'],
      [400, 'no integer', '/containers/running/stop?t=soon'],
      unknown('/containers/nope/stop'),
    ],
  },
  'POST /containers/{id}/restart': {
    statuses: [204, 404, 500],
    cases: [
      [204, 'restarted', '/containers/to-restart/restart?t=0'],
      [400, 'no integer', '/containers/running/restart?t=soon'],
      unknown('/containers/nope/restart'),
      [500, 'its command is missing', '/containers/broken/restart', { changes: true }],
    ],
  },
  'POST /containers/{id}/kill': {
    statuses: [204, 404, 500],
    cases: [
      [204, 'killed', '/containers/to-kill/kill'],
      [400, 'an unknown signal', '/containers/running/kill?signal=NOPE'],
      unknown('/containers/nope/kill'),
      [500, 'it does not run', '/containers/stopped/kill', { newer: 409 }],
    ],
  },
  'POST /containers/{id}/pause': {
    statuses: [204, 404, 500],
    cases: [
      [204, 'paused', '/containers/to-pause/pause'],
      unknown('/containers/nope/pause'),
      [500, 'it does not run', '/containers/stopped/pause', { newer: 409 }],
      [500, 'it is paused', '/containers/paused/pause', { newer: 409 }],
    ],
  },
  'POST /containers/{id}/unpause': {
    statuses: [204, 404, 500],
    cases: [
      [204, 'it goes on', '/containers/to-pause/unpause'],
      unknown('/containers/nope/unpause'),
      [500, 'it does not run', '/containers/stopped/unpause', { newer: 409 }],
      [500, 'it is not paused', '/containers/running/unpause', { newer: 409 }],
    ],
  },
  'POST /containers/{id}/wait': {
    statuses: [200, 404, 500],
    cases: [[200, 'it has ended', '/containers/stopped/wait'], unknown('/containers/nope/wait')],
  },
} as const satisfies StatusRows;
