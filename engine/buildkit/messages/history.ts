import { BYTES, field, FLAG, INTEGER, list, map, message, nested, TEXT } from '../wire/message.ts';
import { Timestamp, TypeAndAttributes } from './common.ts';

/** Messages of the history of builds, and of the store of its documents. */
export const HistoryRequest = message({
  isActiveOnly: field(1, FLAG),
  ref: field(2, TEXT),
  /** Ends behind the records that there are. */
  endsEarly: field(3, FLAG),
  limit: field(5, INTEGER),
});

export const EventType = { STARTED: 0, COMPLETE: 1, DELETED: 2 } as const;

const Descriptor = message({ mediaType: field(1, TEXT), digest: field(2, TEXT), size: field(3, INTEGER) });
const ResultEntry = message({ key: field(1, INTEGER), value: field(2, nested(Descriptor)) });
const ResultInfo = message({ results: list(3, nested(ResultEntry)) });
const Status = message({ code: field(1, INTEGER), message: field(2, TEXT) });

export const HistoryRecord = message({
  ref: field(1, TEXT),
  frontend: field(2, TEXT),
  attributes: map(3, TEXT),
  exporters: list(4, nested(TypeAndAttributes)),
  error: field(5, nested(Status)),
  createdAt: field(6, nested(Timestamp)),
  completedAt: field(7, nested(Timestamp)),
  response: map(9, TEXT),
  result: field(10, nested(ResultInfo)),
  isPinned: field(14, FLAG),
  cachedSteps: field(15, INTEGER),
  totalSteps: field(16, INTEGER),
  completedSteps: field(17, INTEGER),
  /** The failure with its details, a `google.rpc.Status`. */
  externalError: field(18, nested(Descriptor)),
  warnings: field(19, INTEGER),
});
export const HistoryEvent = message({ type: field(1, INTEGER), record: field(2, nested(HistoryRecord)) });

export const UpdateHistoryRequest = message({
  ref: field(1, TEXT),
  isPinned: field(2, FLAG),
  deletes: field(3, FLAG),
  finalizes: field(4, FLAG),
});

/** `containerd.services.content.v1.Content`. */
export const ContentInfoRequest = message({ digest: field(1, TEXT) });
const ContentInfo = message({ digest: field(1, TEXT), size: field(2, INTEGER) });
export const ContentInfoResponse = message({ info: field(1, nested(ContentInfo)) });
export const ReadContentRequest = message({
  digest: field(1, TEXT),
  offset: field(2, INTEGER),
  /** 0: to the end. */
  size: field(3, INTEGER),
});
export const ReadContentResponse = message({ offset: field(1, INTEGER), data: field(2, BYTES) });
