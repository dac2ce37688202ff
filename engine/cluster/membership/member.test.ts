import assert from 'node:assert/strict';
import { test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import type { Identity } from './identity.ts';
import { Member, type MemberNeeds } from './member.ts';

test('a node that becomes a manager asks the others, not itself', () => {
  const managers = [
    { id: 'itself', address: '10.0.0.1:2377' },
    { id: 'other', address: '10.0.0.2:2377' },
  ];
  const identity = { nodeId: 'itself', advertise: '10.0.0.1:2377', managers } as unknown as Identity;
  const needs = { clock: systemClock, begun: () => undefined } as unknown as MemberNeeds;

  const member = new Member(needs, identity);

  assert.deepEqual(member.managers, ['10.0.0.2:2377']);
});
