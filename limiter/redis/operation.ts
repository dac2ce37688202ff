import type { Ask, Verdict } from '../types.ts';

/** Kinds of operations on a caller besides decisions; the script knows these numbers, and decisions follow them. */
export const KINDS = ['end', 'graphql-end', 'content', 'renewal', 'forget'] as const;

export type Operation = {
  /** The last two change what a decision has spent. */
  kind: (typeof KINDS)[number] | 'decision' | 'points' | 'give-back';
  /** Number of ended requests. */
  count: number;
  /** Microseconds of CPU time, pieces of content, requests under way, or points. */
  amount: number;
  /** The decision, or the one that is changed. */
  ask?: Ask;
  verdict?: Verdict;
  /** Why there is none. */
  error?: Error;
  resolve?: (verdict: Verdict) => void;
  reject?: (error: unknown) => void;
  /** It was refused for requests of other gateways that may have ended, and asked again. */
  asked?: boolean;
};

/** The script answers these; the others it just does. */
export function hasVerdict({ kind }: Operation): boolean {
  return kind === 'decision' || kind === 'content' || kind === 'forget';
}
