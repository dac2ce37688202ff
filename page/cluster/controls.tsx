import type { NodeWire, ServiceWire } from '@gantry/client/cluster.ts';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { isReadOnly } from '../api/request.ts';
import { attempt } from '../parts/notices.tsx';
import { useStore } from '../parts/store.ts';
import { scaleService, setAvailability, updateImage } from './changes.ts';

type ServiceProps = { service: ServiceWire; reload: () => void };

/** Fields for the replicas and the image of a service. */
export function ServiceControls({ service, reload }: ServiceProps): JSX.Element | null {
  const { Name, Mode, TaskTemplate } = service.Spec;
  const replicas = Mode?.Replicated?.Replicas;
  const [count, setCount] = useState(String(replicas ?? ''));
  const [image, setImage] = useState(TaskTemplate.ContainerSpec?.Image ?? '');
  if (useStore(isReadOnly)) return null;
  const submit = (change: () => Promise<void>) => (event: Event) => {
    event.preventDefault();
    void attempt(change).then(reload);
  };
  return (
    <div class="actions">
      {replicas !== undefined && (
        <form class="actions" onSubmit={submit(async () => await scaleService(service.ID, Number(count)))}>
          <input
            type="number"
            min="0"
            required
            aria-label={`Tasks of ${Name}`}
            value={count}
            onInput={(event) => setCount(event.currentTarget.value)}
          />
          <button type="submit" aria-label={`Scale ${Name}`}>
            Scale
          </button>
        </form>
      )}
      <form class="actions" onSubmit={submit(async () => await updateImage(service.ID, image.trim()))}>
        <input
          type="text"
          required
          aria-label={`Image of ${Name}`}
          value={image}
          onInput={(event) => setImage(event.currentTarget.value)}
        />
        <button type="submit" aria-label={`Update ${Name}`}>
          Update
        </button>
      </form>
    </div>
  );
}

/** Drains a node, or lets it take tasks again. */
export function NodeControls({ node, reload }: { node: NodeWire; reload: () => void }): JSX.Element | null {
  if (useStore(isReadOnly)) return null;
  const isDrained = node.Spec.Availability === 'drain';
  const change = async (): Promise<void> => await setAvailability(node.ID, isDrained ? 'active' : 'drain');
  return (
    <button type="button" onClick={() => void attempt(change).then(reload)}>
      {isDrained ? 'Activate' : 'Drain'}
    </button>
  );
}
