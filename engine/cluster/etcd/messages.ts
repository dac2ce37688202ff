/** `revision`: of the last change of the key. */
export type KeyValue = Readonly<{ key: string; value: string; revision: number }>;
export type WatchEvent = KeyValue & Readonly<{ isDeleted: boolean }>;
export type RangeAnswer = Readonly<{ revision: number; kvs: readonly KeyValue[] }>;
export type TxnAnswer = Readonly<{ succeeded: boolean; revision: number }>;

/** The key goes with its lease. */
export type Put = Readonly<{ put: string; value: string; lease?: string }>;
export type Op = Put | Readonly<{ delete: string }>;

/** A member of etcd; `name` is the id of its node, and empty before its first start. Ids are decimal texts, as the gateway has them. */
export type Member = Readonly<{ id: string; name: string; peerUrls: readonly string[]; isLearner: boolean }>;
