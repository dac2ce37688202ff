import { UPGRADE, RAW, TEXT, unknown, type StatusRows } from './row.ts';

export const execRows = {
  'POST /containers/{id}/exec': {
    statuses: [201, 404, 409, 500],
    cases: [
      [201, 'made', '/containers/running/exec', { body: { Cmd: ['true'] } }],
      [400, 'no command', '/containers/running/exec', { body: {} }],
      [400, 'a body that is not JSON', '/containers/running/exec', { body: 'true', headers: { 'Content-Type': TEXT } }],
      [400, 'a wrong type', '/containers/running/exec', { body: { Cmd: 5 } }],
      [400, 'unknown keys', '/containers/running/exec', { body: { Cmd: ['true'], DetachKeys: 'ctrl-1' } }],
      unknown('/containers/nope/exec', { body: { Cmd: ['true'] } }),
      [409, 'the container is paused', '/containers/paused/exec', { body: { Cmd: ['true'] } }],
      [409, 'the container does not run', '/containers/stopped/exec', { body: { Cmd: ['true'] } }],
    ],
  },
  'POST /exec/{id}/start': {
    statuses: [200, 404, 409],
    cases: [
      [200, 'with its output', '/exec/{exec-attached}/start', { body: {}, ...RAW }],
      [200, 'without', '/exec/{exec-detached}/start', { body: { Detach: true }, type: '' }],
      [400, 'a wrong type', '/exec/{exec}/start', { body: { Detach: 'yes' } }],
      unknown('/exec/nope/start', { body: {} }),
      unknown('/exec/nope/start', { body: {}, headers: UPGRADE }),
      [409, 'the container is paused', '/exec/{exec-paused}/start', { body: {} }],
      [409, 'it has run', '/exec/{exec-ended}/start', { body: {} }],
    ],
  },
  'POST /exec/{id}/resize': {
    statuses: [201, 404],
    cases: [
      [201, 'its first size', '/exec/{exec}/resize?h=20&w=60', { type: TEXT, newer: 200 }],
      [400, 'no height', '/exec/{exec}/resize?w=60'],
      unknown('/exec/nope/resize?h=20&w=60'),
      [404, 'it has ended', '/exec/{exec-ended}/resize?h=20&w=60'],
    ],
  },
  'GET /exec/{id}/json': {
    statuses: [200, 404, 500],
    cases: [[200, 'an exec', '/exec/{exec}/json'], unknown('/exec/nope/json')],
  },
} as const satisfies StatusRows;
