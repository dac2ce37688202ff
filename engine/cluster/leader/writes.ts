import { createNetwork } from '../networks/create.ts';
import { seedIngress } from '../networks/ingress.ts';
import { removeNetwork } from '../networks/remove.ts';
import { removeNode } from '../nodes/remove.ts';
import { updateNode } from '../nodes/update.ts';
import { createService } from '../services/create.ts';
import { removeService } from '../services/remove.ts';
import { updateService } from '../services/update.ts';
import type { Draft } from '../state/draft.ts';
import { updateCluster } from '../swarm/update.ts';

/** A function of the draft and the time; it does nothing else. */
export type Stage = (draft: Draft, now: Temporal.Instant) => void;

/** Changes a draft as a client of any manager asked for, or throws to refuse. It checks its arguments. */
export type Write = (draft: Draft, args: unknown, now: Temporal.Instant) => unknown;

/** Writes that clients may ask of the leader, by the name under which other managers forward them. */
export const WRITES: Readonly<Record<string, Write>> = {
  updateCluster,
  updateNode,
  removeNode,
  createService,
  updateService,
  removeService,
  createNetwork,
  removeNetwork,
};

/** Stages between a turn's writes and the orchestration of services, in this order. */
export const STAGES: readonly Stage[] = [seedIngress];
