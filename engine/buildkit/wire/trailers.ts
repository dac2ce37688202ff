import { BYTES, field, INTEGER, list, message, nested, TEXT } from './message.ts';
import { GrpcError, StatusCode } from './status.ts';

const Any = message({ type: field(1, TEXT), value: field(2, BYTES) });
const Status = message({ code: field(1, INTEGER), message: field(2, TEXT), details: list(3, nested(Any)) });

const MAX_TEXT_LENGTH = 4096;
/** Trailers are headers, whose size is limited. */
const MAX_DETAILS_BYTES = 12 * 1024;

type Trailers = Readonly<Record<string, string | string[] | undefined>>;

/** The trailers of a call that ended so; undefined: well. */
export function trailersOf(failure: GrpcError | undefined): Record<string, string> {
  if (failure === undefined) return { 'grpc-status': '0' };
  const text =
    failure.message.length <= MAX_TEXT_LENGTH ? failure.message : `${failure.message.slice(0, MAX_TEXT_LENGTH)}…`;
  const status = { 'grpc-status': String(failure.code), 'grpc-message': percentEncoded(text) };
  if (failure.details.length === 0) return status;
  const bytes = statusBytes(failure, text);
  if (bytes.length > MAX_DETAILS_BYTES) return status;
  return { ...status, 'grpc-status-details-bin': Buffer.from(bytes).toString('base64') };
}

/** A failure as a `google.rpc.Status`. */
export function statusBytes({ code, details, message: text }: GrpcError, shown = text): Uint8Array {
  const encoded = details.map(({ type, value }) => ({ type, value: Buffer.from(JSON.stringify(value)) }));
  return Status.encode({ code, message: shown, details: encoded });
}

/** The failure that a server's trailers tell; undefined: none. */
export function failureIn(trailers: Trailers): GrpcError | undefined {
  const code = Number(trailers['grpc-status'] ?? StatusCode.UNKNOWN);
  if (code === StatusCode.OK) return undefined;
  const written = String(trailers['grpc-message'] ?? '');
  return new GrpcError(Number.isInteger(code) ? code : StatusCode.UNKNOWN, percentDecoded(written));
}

function percentEncoded(text: string): string {
  return Buffer.from(text)
    .toString('latin1')
    .replaceAll(
      /[^\u0020-\u007e]|%/g,
      (sign) => `%${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(2, '0')}`,
    );
}

function percentDecoded(text: string): string {
  const bytes = text.replaceAll(/%([0-9a-f]{2})/gi, (_, code: string) =>
    String.fromCodePoint(Number.parseInt(code, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString();
}
