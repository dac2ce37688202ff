import assert from 'node:assert/strict';
import { test } from 'node:test';

import { familiarReference, parseReference, parseRepoAndTag, withDefaultTag } from './reference.ts';

const DIGEST = `sha256:${'0'.repeat(64)}`;

const valid = [
  ['busybox', 'docker.io/library/busybox', undefined, undefined, 'busybox'],
  ['busybox:1.36', 'docker.io/library/busybox', '1.36', undefined, 'busybox:1.36'],
  ['library/busybox', 'docker.io/library/busybox', undefined, undefined, 'busybox'],
  ['docker.io/busybox', 'docker.io/library/busybox', undefined, undefined, 'busybox'],
  ['index.docker.io/library/busybox:a', 'docker.io/library/busybox', 'a', undefined, 'busybox:a'],
  ['user/app', 'docker.io/user/app', undefined, undefined, 'user/app'],
  ['library/a/b', 'docker.io/library/a/b', undefined, undefined, 'library/a/b'],
  ['localhost/app', 'localhost/app', undefined, undefined, 'localhost/app'],
  ['localhost:5000/a/b:t', 'localhost:5000/a/b', 't', undefined, 'localhost:5000/a/b:t'],
  ['my.registry/app', 'my.registry/app', undefined, undefined, 'my.registry/app'],
  ['[::1]:5000/app', '[::1]:5000/app', undefined, undefined, '[::1]:5000/app'],
  ['a__b/c--d.e_f', 'docker.io/a__b/c--d.e_f', undefined, undefined, 'a__b/c--d.e_f'],
  [`busybox@${DIGEST}`, 'docker.io/library/busybox', undefined, DIGEST, `busybox@${DIGEST}`],
  [`r.io/b:t@${DIGEST}`, 'r.io/b', 't', DIGEST, `r.io/b:t@${DIGEST}`],
  [`a:${'t'.repeat(128)}`, 'docker.io/library/a', 't'.repeat(128), undefined, `a:${'t'.repeat(128)}`],
] as const;

for (const [text, repository, tag, digest, familiar] of valid) {
  test(`${text} is taken apart, and written as people write it`, () => {
    const reference = parseReference(text);

    assert.deepEqual(reference, { repository, tag, digest });
    assert.equal(familiarReference(reference), familiar);
  });
}

const invalid = [
  '',
  ':tag',
  'a:',
  'a b',
  'a//b',
  '/a',
  'a/',
  'a:-t',
  `a:${'t'.repeat(129)}`,
  'a@sha256:12',
  'a@',
  '-a',
  'a..b',
  'a___b',
  '_a',
  'host_name:5000/a',
  'Upper',
  'host.io/Upper',
  '0123456789'.repeat(6) + 'abcd',
  'a'.repeat(256),
];

for (const text of invalid) {
  test(`${JSON.stringify(text)} is refused as a reference`, () => {
    assert.throws(() => parseReference(text), {
      kind: 'invalid',
      message: /^invalid re(ference format|pository name)/,
    });
  });
}

test('a name alone means latest, and a tag parameter wins over the one in the name', () => {
  assert.equal(withDefaultTag(parseReference('a')).tag, 'latest');
  assert.equal(parseRepoAndTag('a', undefined).tag, 'latest');
  assert.equal(parseRepoAndTag('a:b', '').tag, 'b');
  assert.equal(parseRepoAndTag('a:b', 'c').tag, 'c');
  assert.deepEqual(parseRepoAndTag(`a:b@${DIGEST}`, 'c'), { repository: 'docker.io/library/a', tag: 'c' });
  assert.throws(() => parseRepoAndTag('a', 'b@c'), { message: 'invalid tag format' });
  assert.equal(parseRepoAndTag('r.io/sha256', 'x').tag, 'x');
  assert.equal(parseRepoAndTag('me/sha256').tag, 'latest');
  for (const name of ['sha256', 'sha256:x', 'library/sha256', 'docker.io/library/sha256', 'index.docker.io/sha256']) {
    assert.throws(() => parseRepoAndTag(name), { kind: 'invalid', message: /^refusing to create an ambiguous tag/ });
  }
  assert.throws(() => parseRepoAndTag(`a@${DIGEST}`, undefined), {
    message: 'refusing to create a tag with a digest reference',
  });
});
