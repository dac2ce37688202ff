import { createNetwork } from '../networks/create.ts';
import { seedIngress } from '../networks/ingress.ts';
import { removeNetwork } from '../networks/remove.ts';
import { removeNode } from '../nodes/remove.ts';
import { updateNode } from '../nodes/update.ts';
import { createSecret } from '../secrets/create.ts';
import { removeSecret } from '../secrets/remove.ts';
import { updateSecret } from '../secrets/update.ts';
import { createService } from '../services/create.ts';
import { removeService } from '../services/remove.ts';
import { updateService } from '../services/update.ts';
import type { Draft } from '../state/draft.ts';
import { finishRotation } from '../swarm/finish-rotation.ts';
import { updateCluster } from '../swarm/update.ts';
import type { WriteArguments, WriteName, WriteResult } from './write-schemas.ts';

/** A function of the draft and the time; it does nothing else. */
export type Stage = (draft: Draft, now: Temporal.Instant) => void;

/** Changes a draft as a client of any manager asked for, or throws to refuse. */
type Operation<N extends WriteName> = (draft: Draft, args: WriteArguments<N>, now: Temporal.Instant) => WriteResult<N>;

/** Writes that clients may ask of the leader, by the name under which other managers forward them. */
export const WRITES: { readonly [N in WriteName]: Operation<N> } = {
  updateCluster,
  updateNode,
  removeNode,
  createService,
  updateService,
  removeService,
  createSecret,
  updateSecret,
  removeSecret,
  createNetwork,
  removeNetwork,
};

/** Stages between a turn's writes and the orchestration of services, in this order. */
export const STAGES: readonly Stage[] = [seedIngress, finishRotation];
