import type { NodeWire, ServiceWire } from '@gantry/client/cluster.ts';

import { call } from '../api/request.ts';
import { notify } from '../parts/notices.tsx';

type Spec = ServiceWire['Spec'];

/** Sets the number of tasks of a replicated service. */
export async function scaleService(id: string, replicas: number): Promise<void> {
  const name = await changeService(id, (spec) => ({ ...spec, Mode: { Replicated: { Replicas: replicas } } }));
  notify(`Scaled ${name} to ${replicas}`);
}

/** Replaces the image of a service, task by task. */
export async function updateImage(id: string, image: string): Promise<void> {
  const name = await changeService(id, (spec) => {
    const { TaskTemplate } = spec;
    return {
      ...spec,
      TaskTemplate: { ...TaskTemplate, ContainerSpec: { ...TaskTemplate.ContainerSpec, Image: image } },
    };
  });
  notify(`Updated ${name} to ${image}`);
}

/** A drained node gives its tasks to others. */
export async function setAvailability(id: string, availability: 'active' | 'drain'): Promise<void> {
  const { Version, Spec, Description } = await call<NodeWire>('GET', `/nodes/${id}`);
  const body = { ...Spec, Availability: availability };
  await call('POST', `/nodes/${id}/update`, { query: { version: Version.Index }, body });
  notify(`${availability === 'drain' ? 'Drained' : 'Activated'} ${Description.Hostname}`);
}

/** Reads the version first: the one on the screen may be older. */
async function changeService(id: string, change: (spec: Spec) => object): Promise<string> {
  const { Version, Spec } = await call<ServiceWire>('GET', `/services/${id}`);
  await call('POST', `/services/${id}/update`, { query: { version: Version.Index }, body: change(Spec) });
  return Spec.Name;
}
