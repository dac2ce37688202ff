import type { Engine } from '../../engine.ts';

/** The parts of the engine by which tasks become containers; the cluster itself is none of them. */
export type AgentNeeds = Omit<Engine, 'cluster'>;
