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

/** What clients may ask the leader to write, by the name under which other managers forward it. */
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

/** What follows a turn's writes before services are orchestrated, in this order. */
export const STAGES: readonly Stage[] = [seedIngress];
