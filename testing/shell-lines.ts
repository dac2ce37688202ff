import { unframe } from '@gantry/client/frames.ts';

import type { TestEngine } from './test-engine.ts';

type Body = Readonly<Record<string, unknown>>;

/** All that a shell line prints in a container of its own, which is removed. */
export async function outputOf(engine: TestEngine, line: string, body: Body = {}): Promise<string> {
  const id = await engine.run(['sh', '-c', line], body);
  await engine.wait(id);
  const { stdout, stderr } = await engine.output(id);
  await engine.delete(`/containers/${id}?v=1`);
  return stdout + stderr;
}

/** All that a shell line prints by an exec. `body`: further fields of its creation. */
export async function execOf(engine: TestEngine, id: string, line: string, body: Body = {}): Promise<string> {
  const request = { Cmd: ['sh', '-c', line], AttachStdout: true, AttachStderr: true, ...body };
  const created = await engine.post<{ Id: string }>(`/containers/${id}/exec`, request);
  const { raw } = await engine.post(`/exec/${created.body.Id}/start`, { Detach: false, Tty: false });
  const { stdout, stderr } = unframe(raw);
  return stdout + stderr;
}
