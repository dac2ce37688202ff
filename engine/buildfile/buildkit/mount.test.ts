import assert from 'node:assert/strict';
import { test } from 'node:test';

import { buildkitMount, mountSource } from './mount.ts';

const expand = (value: string): string => value.replaceAll('$V', 'v');

/** Options of `--mount`, and the fields that they set. */
const taken: readonly [string, Record<string, unknown>][] = [
  ['target=/x', { type: 'bind', target: '/x', isReadOnly: true }],
  ['type=bind,from=a,src=/s,dst=/x,rw', { from: 'a', source: '/s', isReadOnly: false }],
  ['type=bind,destination=/x,readwrite=false', { target: '/x', isReadOnly: true }],
  ['type=cache,id=$V,target=/c', { type: 'cache', id: 'v', isReadOnly: false, sharing: undefined }],
  [
    'TYPE=Cache,target=/c,sharing=LOCKED,uid=1,gid=2,mode=0700,ro',
    { sharing: 'locked', mode: 0o700, isReadOnly: true },
  ],
  ['type=tmpfs,target=/t,size=1.5k', { type: 'tmpfs', sizeBytes: 1536, isReadOnly: false }],
  ['type=secret,id=s,env=S', { id: 's', env: 'S', target: '' }],
  ['type=secret,id=s,required', { isRequired: true }],
  ['type=secret,id=s,required=false,mode=0444,uid=7', { isRequired: false, mode: 0o444, uid: 7 }],
  ['type=ssh,id=k,required=true', { type: 'ssh', isRequired: true }],
  ['type=bind,"target=/a,b"', { target: '/a,b' }],
];
for (const [text, fields] of taken) {
  test(`--mount=${text} is read`, () => {
    const mount = buildkitMount(text, expand);

    assert.deepEqual(Object.fromEntries(Object.keys(fields).map((key) => [key, mount[key as 'id']])), fields);
  });
}

/** Options, and the words of BuildKit's refusal. */
const refused: readonly [string, string][] = [
  ['type=binds,target=/x', 'unsupported mount type "binds" (did you mean bind?)'],
  ['type=cache,sharing=lockd', 'unsupported sharing value "lockd" (did you mean locked?)'],
  ['targt=/x', "unexpected key 'targt' in 'targt=/x' (did you mean target?)"],
  ['target', "invalid field 'target' must be a key=value pair"],
  ['type=bind,required', "unexpected key 'required' for mount type 'bind'"],
  ['type=bind,size=1', "unexpected key 'size' for mount type 'bind'"],
  ['type=tmpfs,size=big', 'invalid value for size: big'],
  ['type=cache,mode=9', 'invalid value 9 for mode'],
  ['type=cache,uid=x', 'invalid value x for uid'],
  ['type=bind,ro=maybe', 'invalid value for ro: maybe'],
  ['type=tmpfs,mode=1', 'mode not allowed for "tmpfs" type mounts'],
  ['type=bind,uid=1', 'uid not allowed for "bind" type mounts'],
  ['type=secret', 'invalid secret mount. one of source, target required'],
  ['type=secret,id=a,src=b', "both source and id can't be set"],
  ['type=secret,id=a,from=b', 'secret mount should not have a from'],
  ['type=secret,id=a,sharing=locked', 'secret mount should not define sharing'],
  ['type=tmpfs,target=/x,sharing=locked', 'invalid cache sharing set for tmpfs mount'],
];
for (const [text, message] of refused) {
  test(`--mount=${text} is refused`, () => {
    assert.throws(() => buildkitMount(text, expand), { kind: 'invalid', message });
  });
}

test('the source of a mount has no variables', () => {
  assert.equal(mountSource('type=bind,from=stage,target=/x'), 'stage');
  assert.throws(() => mountSource('from=$X'), {
    message: "'from' doesn't support variable expansion, define alias stage instead",
  });
});
