import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const NEW_USER_NAMESPACE = 'unshare -U true && echo allowed; grep ^Seccomp: /proc/self/status; exit 0';
const refusesMkdir = JSON.stringify({
  defaultAction: 'SCMP_ACT_ALLOW',
  architectures: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86', 'SCMP_ARCH_AARCH64'],
  syscalls: [
    { names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO', errnoRet: 28 },
    // chmod to exactly 0777
    { names: ['chmod'], action: 'SCMP_ACT_ERRNO', args: [{ index: 1, value: 511, op: 'SCMP_CMP_EQ' }] },
    { names: ['fchmodat'], action: 'SCMP_ACT_ERRNO', args: [{ index: 2, value: 511, op: 'SCMP_CMP_EQ' }] },
  ],
});

/** Errno of calls that nothing in busybox makes: keyctl, a call newer than the filter, and keyctl as a 32-bit program. */
const RAW_CALLS = `
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0); /* a call that faults must not lose the lines before it */
    syscall(SYS_keyctl, 0, 0, 0, 0, 0);
    printf("keyctl %d\\n", errno);
    syscall(461, 0, 0, 0, 0);
    printf("newer %d\\n", errno);
#ifdef __x86_64__
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(288), "b"(0), "c"(0), "d"(0) : "memory");
    printf("32 bits %ld\\n", -result);
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
    printf("getpid %ld\\n", result);
#endif
}`;

for (const runtime of ['runc', 'crun']) {
  suite(`the filter of system calls under ${runtime}`, { concurrency: false }, () => {
    let engine: TestEngine;
    before(async () => {
      engine = await TestEngine.start();
    });
    after(async () => await engine[Symbol.asyncDispose]());

    async function outputOf(script: string, hostConfig: object): Promise<string> {
      const id = await engine.run(['sh', '-c', `exec 2>&1; ${script}`], {
        HostConfig: { Runtime: runtime, ...hostConfig },
      });
      await engine.wait(id);
      const { raw } = await engine.get(`/containers/${id}/logs?stdout=1`);
      await engine.delete(`/containers/${id}`);
      return raw.toString();
    }

    test('the default one refuses a new user namespace', async () => {
      const output = await outputOf(NEW_USER_NAMESPACE, {});

      assert.match(output, /Operation not permitted/);
      assert.match(output, /Seccomp:\t2/);
      assert.doesNotMatch(output, /allowed/);
    });

    test('it is in force in an exec as well', async () => {
      const id = await engine.run(['sleep', '1000'], { HostConfig: { Runtime: runtime } });
      const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, {
        Cmd: ['sh', '-c', `exec 2>&1; ${NEW_USER_NAMESPACE}`],
        AttachStdout: true,
      });
      const { raw } = await engine.post(`/exec/${body.Id}/start`, { Detach: false, Tty: false });
      await engine.delete(`/containers/${id}?force=1`);

      assert.match(raw.toString(), /Operation not permitted/);
      assert.match(raw.toString(), /Seccomp:\t2/);
    });

    test('a call that it does not name is not permitted, one newer than all of it is missing', async () => {
      await using place = await mkdtempDisposable(join(tmpdir(), 'gantry-seccomp-'));
      execFileSync('gcc', ['-static', '-x', 'c', '-', '-o', join(place.path, 'calls')], { input: RAW_CALLS });

      const onHost = spawnSync(join(place.path, 'calls'), { encoding: 'utf8' });
      const output = await outputOf('/calls/calls', { Binds: [`${place.path}:/calls:ro`] });

      assert.match(output, /keyctl 1\n/);
      assert.match(output, /newer 38\n/);
      // Some virtual machines have no calls of 32-bit programs: the host's own is ended by a signal there.
      if (/getpid [1-9]/.test(onHost.stdout)) assert.match(output, /32 bits 1\n[^]*getpid [1-9]/);
      else assert.doesNotMatch(output, /32 bits 0/);
    });

    test('a capability opens its own calls, and no more', async () => {
      const output = await outputOf('mkdir /m; mount -t tmpfs none /m && echo mounted; cat /proc/self/status', {
        CapAdd: ['SYS_ADMIN'],
      });

      assert.match(output, /mounted/);
      assert.match(output, /Seccomp:\t2/);
    });

    for (const [name, hostConfig] of [
      ['unconfined', { SecurityOpt: ['seccomp=unconfined'] }],
      ['privileged', { Privileged: true }],
    ] as const) {
      test(`none when the container is ${name}`, async () => {
        const output = await outputOf(NEW_USER_NAMESPACE, hostConfig);

        assert.match(output, /allowed/);
        assert.match(output, /Seccomp:\t0/);
      });
    }

    test("a client's own one, with its errno and its conditions on arguments", async () => {
      const output = await outputOf('mkdir /d; touch /f; chmod 700 /f && echo 700; chmod 777 /f; echo 777 $?', {
        SecurityOpt: [`seccomp=${refusesMkdir}`],
      });

      assert.match(output, /'\/d': No space left on device/);
      assert.match(output, /700\n/);
      assert.match(output, /chmod: \/f: Operation not permitted/);
    });
  });
}
