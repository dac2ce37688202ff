import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { Inspect, Summary } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };
const MB = 1024 * 1024;

suite('a new container', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** The output of a command in a new container. */
  async function said(script: string, body: Record<string, unknown> = {}): Promise<string> {
    const id = await engine.run(['sh', '-c', script], body);
    await engine.wait(id);
    const { stdout, stderr } = await engine.output(id);
    await engine.delete(`/containers/${id}?v=1`);
    return (stdout + stderr).trim();
  }

  async function refusal(body: Record<string, unknown>, name = ''): Promise<[number, string]> {
    const query = name === '' ? '' : `?name=${name}`;
    const answer = await engine.post<Message>(`/containers/create${query}`, { Cmd: ['true'], ...body });
    return [answer.status, answer.body.message];
  }

  test('environment, hostname, directory and user are those of the request', async () => {
    const body = { Env: ['A=1'], Hostname: 'box', Domainname: 'lan', WorkingDir: '/made/here', User: 'daemon' };

    const lines = (await said('echo $A $HOSTNAME $PATH; hostname; pwd; id; cat /etc/hostname', body)).split('\n');

    assert.equal(lines[0], '1 box /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin');
    assert.deepEqual(lines.slice(1, 3), ['box', '/made/here']);
    assert.match(lines[3]!, /^uid=1\(daemon\) gid=1\(daemon\)/);
    assert.equal(lines[4], 'box');
  });

  for (const path of ['/bin/busybox', '/bin/busybox/below']) {
    test(`the working directory ${path}, which is a file, is refused, and nothing is left`, async () => {
      const before = (await engine.get('/containers/json?all=1')).raw.toString();

      const refused = await refusal({ Image: 'busybox', WorkingDir: path });

      assert.deepEqual(refused, [400, 'Cannot mkdir: /bin/busybox is not a directory']);
      assert.equal((await engine.get('/containers/json?all=1')).raw.toString(), before);
    });
  }

  test("the address is in the hosts file, beside the client's lines", async () => {
    const text = await said('cat /etc/hosts; ip -4 addr show eth0 | grep inet', {
      Hostname: 'box',
      HostConfig: { ExtraHosts: ['db:10.9.8.7', 'outside:host-gateway'] },
    });

    const address = /inet ([\d.]+)\//.exec(text)?.[1];
    assert.match(text, new RegExp(`^${address}\\tbox$`, 'm'));
    assert.match(text, /^10\.9\.8\.7\tdb$/m);
    assert.match(text, new RegExp(`^${address?.replace(/\d+$/, '1')}\toutside$`, 'm'));
  });

  const names: [hostname: string, domainname: string, line: string][] = [
    ['box', '', 'box'],
    ['box', 'example.test', 'box.example.test box'],
    ['mail.example.test', '', 'mail.example.test mail'],
    ['mail.inner', 'example.test', 'mail.inner.example.test mail'],
  ];
  for (const [Hostname, Domainname, line] of names) {
    test(`a container named ${Hostname}, in the domain "${Domainname}", is ${line} in /etc/hosts`, async () => {
      assert.equal(await said('tail -n 1 /etc/hosts | cut -f 2', { Hostname, Domainname }), line);
    });
  }

  test("the resolver has the client's settings", async () => {
    const HostConfig = { Dns: ['10.1.1.1'], DnsSearch: ['lan'], DnsOptions: ['ndots:3'] };

    const lines = (await said('cat /etc/resolv.conf', { HostConfig })).split('\n');

    assert.deepEqual(new Set(lines), new Set(['nameserver 10.1.1.1', 'search lan', 'options ndots:3']));
  });

  test('limits reach the kernel', async () => {
    const v1 =
      'cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/cpu/cpu.shares';
    const v2 = 'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max';

    const text = await said(`if [ -d /sys/fs/cgroup/memory ]; then ${v1}; else ${v2}; fi`, {
      HostConfig: { Memory: 64 * MB, PidsLimit: 77, CpuShares: 512 },
    });

    assert.match(text, new RegExp(`^${64 * MB}\n77(\n512)?$`));
  });

  test('too little memory ends the container, and it says so', async () => {
    const id = await engine.run(['sh', '-c', 'head -c 100000000 /dev/zero | tail'], {
      HostConfig: { Memory: 10 * MB, MemorySwap: 10 * MB },
    });

    await engine.wait(id);

    const { body } = await engine.get<Inspect>(`/containers/${id}/json`);
    assert.equal(body.State.OOMKilled, true);
  });

  test('a plain container is kept away from the host', async () => {
    const attempts = ['mount -t tmpfs x /home', 'echo x >/proc/sys/kernel/hostname', 'mknod /d b 8 0 && cat /d'];

    const done = await said(
      attempts.map((attempt) => `(${attempt}) >/dev/null 2>&1 && echo did: ${attempt}`).join('; '),
    );

    assert.equal(done, '');
    assert.equal(await said('ls -A /sys/firmware 2>/dev/null | wc -l'), '0');
  });

  test('capabilities can be taken and given', async () => {
    const mask = async (HostConfig: object): Promise<bigint> =>
      BigInt(`0x${/CapEff:\s*(\w+)/.exec(await said('cat /proc/self/status', { HostConfig }))?.[1]}`);
    const CHOWN = 1n;
    const NET_ADMIN = 1n << 12n;

    assert.equal((await mask({})) & (CHOWN | NET_ADMIN), CHOWN);
    assert.equal((await mask({ CapDrop: ['chown'], CapAdd: ['NET_ADMIN'] })) & (CHOWN | NET_ADMIN), NET_ADMIN);
    assert.equal(await mask({ CapDrop: ['ALL'] }), 0n);
  });

  test('a read-only root takes no file, a tmpfs in it does', async () => {
    const text = await said('touch /x; touch /t/x && ls /t; grep " /t " /proc/mounts', {
      HostConfig: { ReadonlyRootfs: true, Tmpfs: { '/t': 'size=65536k,mode=700' } },
    });

    assert.match(text, /Read-only file system/);
    assert.match(text, /^x$/m);
    assert.match(text, /size=65536k,mode=700/);
  });

  test('/dev/shm has the wanted size', async () => {
    assert.match(await said('df -k /dev/shm | tail -1', { HostConfig: { ShmSize: 3 * MB } }), /\b3072\b/);
  });

  test('sysctls, ulimits and devices are set', async () => {
    const HostConfig = {
      Sysctls: { 'net.ipv4.ip_forward': '1' },
      Ulimits: [{ Name: 'nofile', Soft: 99, Hard: 100 }],
      Devices: [{ PathOnHost: '/dev/full', PathInContainer: '/dev/brim', CgroupPermissions: 'rw' }],
    };

    const text = await said('cat /proc/sys/net/ipv4/ip_forward; ulimit -n; echo x 2>&1 >/dev/brim', { HostConfig });

    assert.deepEqual(text.split('\n').slice(0, 2), ['1', '99']);
    assert.match(text, /No space left on device/);
  });

  test('a privileged container may nearly everything', async () => {
    const text = await said('mount -t tmpfs x /home && echo mounted; ls /dev/full', {
      HostConfig: { Privileged: true },
    });

    assert.equal(text, 'mounted\n/dev/full');
  });

  test('a folder of the host is mounted, read-only on request, and created if it is missing', async () => {
    const folder = join(engine.directory, 'shared');
    mkdirSync(folder);
    writeFileSync(join(folder, 'greeting'), 'hello');
    const missing = join(engine.directory, 'made', 'by', 'the', 'engine');

    const text = await said('cat /s/greeting; echo; touch /s/x; touch /m/x && ls /m', {
      HostConfig: { Binds: [`${folder}:/s:ro`, `${missing}:/m`] },
    });

    assert.match(text, /^hello\n.*Read-only file system\nx$|^hello\nx\n.*Read-only file system$/s);
    assert.equal(readFileSync(join(missing, 'x'), 'utf8'), '');
  });

  test('a named volume keeps its files, and starts with those of the image', async () => {
    const Binds = ['kept-volume:/etc'];

    await said('echo new >/etc/new', { HostConfig: { Binds } });

    assert.match(await said('cat /etc/new; grep -c root /etc/passwd', { HostConfig: { Binds } }), /^new\n1$/);
  });

  test('the volumes of another container can be borrowed', async () => {
    await engine.create(
      ['true'],
      { Volumes: { '/lent': {} }, HostConfig: { Binds: ['lent-volume:/named'] } },
      'lender',
    );

    const text = await said('touch /lent/x && ls /lent; touch /named/x', {
      HostConfig: { VolumesFrom: ['lender:ro'] },
    });

    assert.match(text, /Read-only file system/);
    assert.equal((await engine.get('/volumes/lent-volume')).status, 200);
  });

  test('an anonymous volume goes with its container when it is told to', async () => {
    const volumesOf = async (v: boolean): Promise<number[]> => {
      const id = await engine.create(['true'], { Volumes: { '/data': {} } });
      const { body } = await engine.get<Inspect>(`/containers/${id}/json`);
      const name = body.Mounts[0]!.Name!;
      assert.match(name, /^[0-9a-f]{64}$/);
      await engine.delete(`/containers/${id}?v=${v}`);
      return [(await engine.get(`/volumes/${name}`)).status];
    };

    assert.deepEqual(await volumesOf(true), [404]);
    assert.deepEqual(await volumesOf(false), [200]);
  });

  /** Removals of a container with an anonymous volume, of one that borrowed it, and of one that named it. */
  const kept: string[] = [];
  const removals: [steps: readonly string[], isKept: boolean][] = [
    [['lender?v=1', 'borrower?v=1'], false],
    [['borrower?v=1', 'lender?v=1'], false],
    [['lender', 'borrower?v=1'], false],
    [['borrower', 'lender?v=1'], false],
    [['borrower?v=1', 'lender'], true],
    [['lender?v=1', 'borrower'], true],
    [['lender', 'borrower'], true],
    [['lender?v=1', 'naming?v=1'], true],
    [['lender', 'borrower?v=1', 'naming?v=1'], true],
    [['naming?v=1', 'lender?v=1'], false],
  ];
  for (const [steps, isKept] of removals) {
    test(`an anonymous volume is ${isKept ? 'kept' : 'removed'} after removals of ${steps.join(', ')}`, async () => {
      const lender = await engine.create(['true'], { Volumes: { '/data': {} } });
      const { body } = await engine.get<Inspect>(`/containers/${lender}/json`);
      const name = body.Mounts[0]!.Name!;
      const bodies = { borrower: { VolumesFrom: [lender] }, naming: { Binds: [`${name}:/named`] } };
      const ids = new Map([['lender', lender]]);
      for (const [kind, HostConfig] of Object.entries(bodies)) {
        if (steps.some((step) => step.startsWith(kind))) ids.set(kind, await engine.create(['true'], { HostConfig }));
      }

      for (const step of steps) {
        const [kind, query = ''] = step.split('?');
        assert.equal((await engine.delete(`/containers/${ids.get(kind!)}?${query}`)).status, 204);
      }

      assert.equal((await engine.get(`/volumes/${name}`)).status, isKept ? 200 : 404);
      if (isKept) kept.push(name);
    });
  }

  test('the next daemon keeps the same volumes', async () => {
    await engine.kill();
    await engine.startAgain();

    for (const name of kept) assert.equal((await engine.get(`/volumes/${name}`)).status, 200);
  });

  test('a namespace of another container can be joined', async () => {
    const other = await engine.run(['sleep', '1000'], { HostConfig: { IpcMode: 'shareable' } }, 'other');
    const ns = (id: string): string => `for n in net pid ipc; do readlink /proc/${id}/ns/$n; done`;
    const { body } = await engine.get<Inspect>(`/containers/${other}/json`);
    const expected = ['net', 'pid', 'ipc'].map((kind) =>
      engine.onHost(['readlink', `/proc/${body.State.Pid}/ns/${kind}`]),
    );

    const HostConfig = { NetworkMode: 'container:other', PidMode: 'container:other', IpcMode: 'container:other' };
    const text = await said(ns('self'), { HostConfig });

    assert.deepEqual(
      text.split('\n'),
      (await Promise.all(expected)).map((line) => line.trim()),
    );
  });

  test('another container is meant by its id, whatever its name becomes', async () => {
    const id = await engine.create(['true'], {}, 'first-name');
    const HostConfig = Object.fromEntries(
      ['Ipc', 'Pid', 'Network'].map((kind) => [`${kind}Mode`, 'container:first-name']),
    );

    const joined = await engine.create(['true'], { HostConfig });

    const { IpcMode, PidMode, NetworkMode } = (await engine.get<Inspect>(`/containers/${joined}/json`)).body.HostConfig;
    assert.deepEqual(
      [IpcMode, PidMode, NetworkMode],
      Array.from({ length: 3 }, () => `container:${id}`),
    );
  });

  test('a terminal has the size that newer clients send with the creation', async () => {
    const id = await engine.run(['stty', 'size'], { Tty: true, HostConfig: { ConsoleSize: [33, 101] } });

    assert.equal(await engine.wait(id), 0);
    assert.equal((await engine.get(`/containers/${id}/logs?stdout=1`)).raw.toString(), '33 101\r\n');
  });

  test('the host’s own namespaces can be used', async () => {
    const text = await said('for n in net pid ipc uts; do readlink /proc/self/ns/$n; done', {
      HostConfig: { NetworkMode: 'host', PidMode: 'host', IpcMode: 'host', UTSMode: 'host' },
    });

    const kinds = ['net', 'pid', 'ipc', 'uts'];
    const own = await Promise.all(
      kinds.map(async (kind) => await engine.onHost(['readlink', `/proc/${engine.pid}/ns/${kind}`])),
    );
    assert.deepEqual(
      text.split('\n'),
      own.map((line) => line.trim()),
    );
  });

  const tmpfsFlags: [options: string, shown: string][] = [
    ['', 'rw,nosuid,nodev,noexec,relatime'],
    ['exec,suid,dev', 'rw,relatime'],
    ['noexec,exec,size=1m,size=2m', 'rw,nosuid,nodev,relatime,size=2048k'],
    ['ro,exec,noexec,rw', 'rw,nosuid,nodev,noexec,relatime'],
  ];
  for (const [options, shown] of tmpfsFlags) {
    test(`of the flags of a tmpfs the last word counts, as in dockerd: "${options}"`, async () => {
      const text = await said('grep " /t " /proc/mounts', { HostConfig: { Tmpfs: { '/t': options } } });

      assert.equal(text, `tmpfs /t tmpfs ${shown} 0 0`);
    });
  }

  for (const Runtime of ['crun', 'runc']) {
    test(`a tmpfs is shared or unbindable as its options say, by ${Runtime}`, async () => {
      const Tmpfs = { '/a': 'shared', '/b': 'size=1m,rshared', '/c': 'runbindable', '/d': 'shared,private', '/e': '' };

      const text = await said(`awk '$5 ~ "^/[a-e]?$" { print $5, $7 }' /proc/self/mountinfo`, {
        HostConfig: { Runtime, Tmpfs },
      });

      const lines = text.replaceAll(/shared:\d+/g, 'shared').split('\n');
      assert.deepEqual(lines.toSorted(), ['/ -', '/a shared', '/b shared', '/c unbindable', '/d -', '/e -']);
    });
  }

  test('an impossible request is refused with a clear error, and nothing is made', async () => {
    const before = (await engine.get<Summary[]>('/containers/json?all=1')).body.length;

    assert.deepEqual(await refusal({ Image: 'nowhere' }), [404, 'No such image: nowhere:latest']);
    assert.deepEqual(await refusal({ Image: 'busybox' }, '.a'), [
      400,
      'Invalid container name (.a), only [a-zA-Z0-9_-][a-zA-Z0-9_.-]* are allowed',
    ]);
    assert.equal((await refusal({ Image: 'busybox', HostConfig: { PidMode: 'container:nobody' } }))[0], 400);
    assert.equal((await refusal({ Image: 'busybox', HostConfig: { Memory: 'much' } }))[0], 400);
    assert.deepEqual(await refusal({ Image: 'busybox', Cmd: ['true'], HostConfig: { IpcMode: 'any' } }), [
      400,
      'invalid IPC mode: any',
    ]);
    assert.deepEqual(await refusal({ Image: 'busybox', Cmd: ['true'], HostConfig: { ConsoleSize: [-1, 80] } }), [
      400,
      'invalid console size: -1x80',
    ]);

    assert.equal((await engine.get<Summary[]>('/containers/json?all=1')).body.length, before);
  });

  test('a name may have dots, but not at its beginning: at create and rename', async () => {
    for (const name of ['web.1.x', '-a', '_a.', '/a..b']) {
      const id = await engine.create(['true'], {}, name);

      const { body } = await engine.get<Inspect>(`/containers/${name.replace('/', '')}/json`);
      const renamed = await engine.post(`/containers/${id}/rename?name=${name}.new`);
      const refused = await engine.post<{ message: string }>(`/containers/${id}/rename?name=.${id}`);

      assert.deepEqual([body.Id, renamed.status, refused.status], [id, 204, 400]);
      assert.match(refused.body.message, /^Invalid container name \(\./);
      await engine.delete(`/containers/${id}`);
    }
  });

  test('a name is given once', async () => {
    const first = await engine.create(['true'], {}, '_mine');

    const [status, message] = await refusal({ Image: 'busybox' }, '_mine');

    assert.equal(status, 409);
    assert.ok(message.includes(`The container name "/_mine" is already in use by container "${first}"`));
  });

  test('of creates with one name at the same time exactly one is made', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, async () => await engine.post('/containers/create?name=race', { Image: 'busybox' })),
    );

    const statuses = answers.map(({ status }) => status);
    assert.deepEqual(
      statuses.toSorted((a, b) => a - b),
      [201, ...Array.from({ length: 7 }, () => 409)],
    );
  });

  test('null stands for a missing value, everywhere', async () => {
    const keys = [
      'Env',
      'Cmd',
      'Entrypoint',
      'Labels',
      'Volumes',
      'ExposedPorts',
      'User',
      'Tty',
      'HostConfig',
      'NetworkingConfig',
      'Healthcheck',
    ];
    const body = Object.fromEntries(keys.map((key) => [key, null]));

    const { status } = await engine.post('/containers/create', { ...body, Image: 'busybox' });
    const inner = await engine.post('/containers/create', {
      Image: 'busybox',
      HostConfig: {
        Binds: null,
        PortBindings: { '80/tcp': null },
        RestartPolicy: null,
        LogConfig: null,
        Memory: null,
        Ulimits: null,
      },
    });

    assert.deepEqual([status, inner.status], [201, 201]);
  });
});
