import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { exitCodeFor, startFailure } from './start-failure.ts';

// Messages of runc 1.1, with dockerd 20.10's codes.
for (const [reason, command, expected] of [
  ['runc run failed: unable to start container process: exec: "x": executable file not found in $PATH', 'x', 127],
  [
    'runc run failed: unable to start container process: exec: "/no/x": stat /no/x: no such file or directory',
    '/no/x',
    127,
  ],
  ['runc run failed: unable to start container process: exec: "/etc": permission denied', '/etc', 126],
  ['runc run failed: unable to start container process: exec: "/etc": is a directory', '/etc', 126],
  ['error mounting "/etc" to rootfs at "/etc/passwd": it is a directory', '/etc', 128],
  ['runc run failed: … exec: "/etc/passwd/x": stat /etc/passwd/x: not a directory', '/etc/passwd/x', 127],
  ['error mounting "/gone" to rootfs at "/data": stat /gone: no such file or directory', 'true', 128],
  ['sysctl "kernel.nonexist" is not in a separate kernel namespace', 'true', 128],
] as const) {
  test(`${expected} for ${reason}`, () => {
    assert.equal(exitCodeFor(reason, command), expected);
  });
}

function folder(files: Record<string, string>): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'gantry-failure-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(path, name), content);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test("the last error of the runtime's log is told in dockerd's words", () => {
  using place = folder({
    'config.json': JSON.stringify({ process: { args: ['nonexist'] } }),
    'runtime.log':
      '{"level":"warning","msg":"never mind"}\n' +
      '{"level":"error","msg":"runc run failed: unable to start container process: exec: \\"nonexist\\": executable file not found in $PATH"}\n',
  });

  const { message, exitCode } = startFailure(place.path, 'container', 'the runtime ended with code 1');

  assert.equal(
    message,
    'failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: ' +
      'exec: "nonexist": executable file not found in $PATH: unknown',
  );
  assert.equal(exitCode, 127);
});

for (const [said, command, expected, exitCode] of [
  [
    'executable file `x` not found in $PATH: No such file or directory',
    'x',
    'exec: "x": executable file not found in $PATH',
    127,
  ],
  [
    'executable file `/x` not found in $PATH: No such file or directory',
    '/x',
    'exec: "/x": stat /x: no such file or directory',
    127,
  ],
  [
    'executable file `/x` not found: No such file or directory',
    '/x',
    'exec: "/x": stat /x: no such file or directory',
    127,
  ],
  ['open executable: Operation not permitted', '', 'exec: "": executable file not found in $PATH', 127],
  ['cannot find `` in $PATH: No such file or directory', '', 'exec: "": executable file not found in $PATH', 127],
  ['the path `/etc` is not a regular file: Operation not permitted', '/etc', 'exec: "/etc": permission denied', 126],
  [
    'the path `/etc/passwd` exists but it is not executable: Operation not permitted',
    '/etc/passwd',
    'exec: "/etc/passwd": permission denied',
    126,
  ],
  [
    'cannot open `/bin/true/x`: Not a directory',
    '/bin/true/x',
    'exec: "/bin/true/x": stat /bin/true/x: not a directory',
    127,
  ],
  ['cannot open `/loop`: Too many levels of symbolic links', '/loop', 'exec: "/loop": permission denied', 126],
  ['open executable: Permission denied', '/etc/passwd', 'exec: "/etc/passwd": permission denied', 126],
  ['open executable: Operation not permitted', '/etc', 'exec: "/etc": permission denied', 126],
  ['open executable: Not a directory', '/bin/true/x', 'exec: "/bin/true/x": stat /bin/true/x: not a directory', 127],
  [
    'exec container process (missing dynamic library?) `/bin/x`: No such file or directory',
    '/bin/x',
    'exec /bin/x: no such file or directory',
    127,
  ],
  ['exec container process `/bin/x`: Exec format error', '/bin/x', 'exec /bin/x: exec format error', 128],
] as const) {
  test(`crun's message is reported in runc's words: ${said}`, () => {
    using place = folder({
      'config.json': JSON.stringify({ process: { args: [command] } }),
      'runtime.log': `${JSON.stringify({ level: 'error', msg: said })}\n`,
    });

    const failure = startFailure(place.path, 'container', '');

    const prefix = 'failed to create shim task: OCI runtime create failed: crun create failed: ';
    assert.ok(
      failure.message.startsWith(`${prefix}unable to start container process: ${expected}: unknown`),
      failure.message,
    );
    assert.equal(failure.exitCode, exitCode);
  });
}

for (const said of ['chdir `/no`', 'chdir to `/no`']) {
  test(`a missing working directory is reported for an exec too: ${said}`, () => {
    using place = folder({
      'process.json': JSON.stringify({ args: ['true'] }),
      'runtime.log': `${JSON.stringify({ level: 'error', msg: `${said}: No such file or directory` })}\n`,
    });

    assert.equal(
      startFailure(place.path, 'exec', '').message,
      'OCI runtime exec failed: exec failed: unable to start container process: ' +
        'chdir to cwd ("/no") set in config.json failed: no such file or directory: unknown',
    );
  });
}

test("without a message of the runtime the shim's finding is reported", () => {
  using place = folder({});

  const { message, exitCode } = startFailure(place.path, 'container', 'the runtime was ended by signal 9');

  assert.equal(
    message,
    'failed to create shim task: OCI runtime create failed: the runtime was ended by signal 9: unknown',
  );
  assert.equal(exitCode, 128);
});

for (const [reason, code] of [
  ['exec: "x": executable file not found in $PATH', 127],
  ['exec: "x": permission denied', 126],
  ['argument list too long', 126],
] as const) {
  test(`an exec that cannot be started is ${code}: ${reason}`, () => {
    const msg = `exec failed: unable to start container process: ${reason}`;
    using place = folder({ 'runtime.log': `${JSON.stringify({ level: 'error', msg })}\n` });

    const { message, exitCode } = startFailure(place.path, 'exec', '');

    assert.equal(message, `OCI runtime exec failed: ${msg}: unknown`);
    assert.equal(exitCode, code);
  });
}

for (const [name, cut] of [
  ['a line that was cut off', '{"level":"error","msg":"cont'],
  ['a line that is no message', '{"level":"error","msg":7}\nnull\n7\n'],
  ['a part of a character', '{"level":"error","msg":"\u{1F4A5}'],
] as const) {
  for (const kind of ['container', 'exec'] as const) {
    test(`${name} in the runtime's log is passed over, of a start of a ${kind}`, () => {
      using place = folder({ 'runtime.log': `{"level":"error","msg":"the reason"}\n${cut}` });
      using only = folder({ 'runtime.log': cut, 'config.json': '{"process":{"ar', 'process.json': '{"ar' });

      assert.match(startFailure(place.path, kind, 'the runtime ended with code 1').message, /: the reason: unknown$/);
      assert.match(startFailure(only.path, kind, 'the runtime ended with code 1').message, /ended with code 1/);
    });
  }
}

test('a log that cannot be read hides the failure from nobody', () => {
  using place = folder({});
  mkdirSync(join(place.path, 'runtime.log'));

  assert.match(startFailure(place.path, 'exec', 'the runtime ended with code 1').message, /ended with code 1/);
});
