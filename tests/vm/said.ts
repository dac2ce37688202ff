import { unframe } from '@gantry/client/frames.ts';

import type { Side } from '../clients/both-engines.ts';

/** The output of a container's shell, errors included. */
export async function said({ api }: Side, script: string, HostConfig: Record<string, unknown>): Promise<string> {
  const { body } = await api.post<{ Id: string }>('/containers/create', {
    Image: 'busybox',
    Cmd: ['sh', '-c', `exec 2>&1; ${script}`],
    HostConfig: { NetworkMode: 'none', ...HostConfig },
  });
  const start = await api.post(`/containers/${body.Id}/start`);
  if (start.status !== 204) return start.raw.toString();
  await api.post(`/containers/${body.Id}/wait`);
  const { raw } = await api.get(`/containers/${body.Id}/logs?stdout=1&stderr=1`);
  await api.delete(`/containers/${body.Id}?force=1`);
  return unframe(raw).stdout;
}
