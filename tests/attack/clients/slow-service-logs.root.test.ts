import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const MAX_GROWTH_MB = 64;
const READERS = 20;
const ADDRESS = { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' };
const WRITER = {
  Image: 'busybox',
  Command: ['sh', '-c', 'yes 0123456789012345678901234567890 | head -c 8000000; echo; echo end; exec sleep 1000'],
};

/** Their lines pass through the node, the leader and the manager, all of them in this daemon. */
test("slow readers of a service's log cost little memory, and others are served", async () => {
  await using engine = await TestEngine.start({ version: '1.41' });
  assert.equal((await engine.post('/swarm/init', ADDRESS)).status, 200);
  const TaskTemplate = { ContainerSpec: WRITER, RestartPolicy: { Condition: 'none' } };
  assert.equal((await engine.post('/services/create', { Name: 'writer', TaskTemplate })).status, 201);
  await eventually('all is written', async () => {
    const { status, raw } = await engine.get('/services/writer/logs?stdout=1&tail=1');
    return status === 200 && raw.toString().includes('end') ? true : undefined;
  });

  async function begin(): Promise<Socket> {
    const socket = connect({ path: engine.socketPath });
    await once(socket, 'connect');
    socket.write('GET /v1.41/services/writer/logs?stdout=1&follow=1 HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'readable');
    return socket;
  }
  const first = await begin(); // functions are compiled

  await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
    const sockets = await Promise.all(Array.from({ length: READERS }, begin));
    for (let n = 0; n < 200; n += 1) {
      if (n % 20 === 0) for (const socket of sockets) socket.read(1);
      assert.equal((await engine.post('/volumes/create', { Name: `v${n % 10}` })).status, 201);
    }
    for (const socket of sockets) socket.destroy();
  });

  first.destroy();
});
