/** The names of the package's root; each framework and store with dependencies of its own has an entry beside it. */
export { type Credential, credentialIn, tokenOf } from './credentials.ts';
export type { LimitStore } from './limit-store.ts';
export { RateLimiter, type RateLimiterOptions } from './limiter.ts';
export { MemoryStore, type MemoryStoreOptions } from './memory/store.ts';
export {
  headersOf,
  refusalOf,
  type RefusalResponse,
  type RefusalStyle,
  statusBody,
  type StatusBody,
} from './present.ts';
export { type CallerFacts, callerFrom, defaultPrimaryLimits, type PrimaryLimits } from './primary.ts';
export { defaultRules, limitRules, type RuleChanges } from './rules.ts';
export * from './types.ts';
