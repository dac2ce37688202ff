import { removeNode } from '../nodes/remove.ts';
import { updateNode } from '../nodes/update.ts';
import type { Draft } from '../state/draft.ts';
import { updateCluster } from '../swarm/update.ts';
import type { Stage } from './turns.ts';

/** Changes a draft as a client of any manager asked for, or throws to refuse. It checks its arguments. */
export type Write = (draft: Draft, args: unknown, now: Temporal.Instant) => unknown;

/** What clients may ask the leader to write, by the name under which other managers forward it. */
export const WRITES: Readonly<Record<string, Write>> = { updateCluster, updateNode, removeNode };

/** What follows each turn's writes, in this order. */
export const STAGES: readonly Stage[] = [];
