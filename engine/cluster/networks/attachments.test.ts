import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import { Draft } from '../state/draft.ts';
import { Replica } from '../state/replica.ts';
import { storeAttachments } from './attachments.ts';
import { createNetwork } from './create.ts';

const NOW = Temporal.Instant.from('2026-01-01T00:00:00Z');
const DATED = { createdAt: NOW.toString(), updatedAt: NOW.toString() };
const ONE = { id: 'a1', network: 'open', name: 'box', aliases: [] };

function cluster(): Draft {
  const draft = new Draft(new Replica(systemClock));
  for (const id of ['n1', 'n2']) {
    const spec = { name: '', labels: {}, role: 'worker', availability: 'active' } as const;
    draft.put('node', { ...DATED, id, spec, role: 'worker', status: { state: 'ready', message: '', address: '' } });
  }
  const rest = { labels: {}, options: {}, internal: false, ranges: [] };
  createNetwork(draft, { name: 'open', attachable: true, ...rest }, NOW);
  createNetwork(draft, { name: 'closed', ...rest }, NOW);
  return draft;
}

const REFUSED: readonly [over: object, reason: RegExp][] = [
  [{ name: 'evil\nquit' }, /^invalid container name/],
  [{ name: 'a b' }, /^invalid container name/],
  [{ name: '' }, /^invalid container name/],
  [{ name: '/box' }, /^invalid container name/],
  [{ ip: 'zzz' }, /^invalid IPv4 address/],
  [{ ip: '::1' }, /^invalid IPv4 address/],
  [{ ip: '10.0.0.5\nquit' }, /^invalid IPv4 address/],
  [{ network: 'none' }, /network not found$/],
  [{ network: 'closed' }, /network closed not manually attachable$/],
];

suite('containers of a node in attachable networks', () => {
  for (const [over, reason] of REFUSED) {
    test(`${JSON.stringify(over)} is refused, and others of the node are not`, () => {
      const draft = cluster();

      const [refusal, ...more] = storeAttachments(
        draft,
        'n1',
        [
          { ...ONE, ...over },
          { ...ONE, id: 'a2' },
        ],
        NOW,
      );

      assert.deepEqual(more, []);
      assert.equal(refusal?.id, 'a1');
      assert.match(refusal.reason, reason);
      assert.deepEqual(
        [...draft.all('attachment')].map(({ id }) => id),
        ['a2'],
      );
    });
  }

  test('a name is changed by the same rules, and by its own node only', () => {
    const draft = cluster();
    storeAttachments(draft, 'n1', [ONE], NOW);

    const foreign = storeAttachments(draft, 'n2', [{ ...ONE, name: 'stolen' }], NOW);
    const bad = storeAttachments(draft, 'n1', [{ ...ONE, name: 'a\nb' }], NOW);
    assert.equal(foreign.length + bad.length, 2);
    assert.equal(draft.get('attachment', 'a1')?.name, 'box');

    assert.deepEqual(storeAttachments(draft, 'n1', [{ ...ONE, name: 'renamed' }], NOW), []);
    assert.equal(draft.get('attachment', 'a1')?.name, 'renamed');
  });

  test('aliases that no question can ask for are left out, and those beyond a hundred', () => {
    const draft = cluster();
    const many = Array.from({ length: 200 }, (_, at) => `alias${at}`);

    storeAttachments(draft, 'n1', [{ ...ONE, aliases: ['a\nquit', 'a b', '', 'x'.repeat(100_000), ...many] }], NOW);

    assert.deepEqual(draft.get('attachment', 'a1')?.aliases, many.slice(0, 100));
  });
});
