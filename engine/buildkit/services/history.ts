import type { History } from '../history/history.ts';
import { presentRecord } from '../history/record.ts';
import { Nothing } from '../messages/common.ts';
import * as messages from '../messages/history.ts';
import { streaming, unary, type Methods } from '../wire/service.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';

const CONTROL = '/moby.buildkit.v1.Control/';
const CONTENT = '/containerd.services.content.v1.Content/';
const CHUNK_BYTES = 256 * 1024;

/** The methods of `docker buildx history`. */
export function historyMethods(history: History): Methods {
  return new Map([
    [
      `${CONTROL}ListenBuildHistory`,
      streaming(messages.HistoryRequest, messages.HistoryEvent, async function* listen(request, { signal }) {
        for await (const { type, record } of history.listen(request, signal))
          yield { type, record: presentRecord(record) };
      }),
    ],
    [
      `${CONTROL}UpdateBuildHistory`,
      unary(messages.UpdateHistoryRequest, Nothing, ({ ref, isPinned, deletes, finalizes }) => {
        if (deletes) history.delete(ref);
        else if (finalizes) history.finalize(ref);
        else history.pin(ref, isPinned);
        return {};
      }),
    ],
    [
      `${CONTENT}Info`,
      unary(messages.ContentInfoRequest, messages.ContentInfoResponse, ({ digest }) => ({
        info: { digest, size: documentOf(history, digest).length },
      })),
    ],
    [
      `${CONTENT}Read`,
      streaming(messages.ReadContentRequest, messages.ReadContentResponse, async function* read(request) {
        const document = documentOf(history, request.digest);
        const end = request.size > 0 ? Math.min(request.offset + request.size, document.length) : document.length;
        for (let offset = Math.max(0, request.offset); offset < end; offset += CHUNK_BYTES)
          yield await Promise.resolve({ offset, data: document.subarray(offset, Math.min(end, offset + CHUNK_BYTES)) });
      }),
    ],
  ]);
}

function documentOf(history: History, digest: string): Buffer {
  const document = history.document(digest);
  if (document === undefined) throw new GrpcError(StatusCode.NOT_FOUND, `no document ${JSON.stringify(digest)}`);
  return document;
}
