/** The codes of gRPC that this protocol uses. */
export const StatusCode = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;
export type StatusCode = (typeof StatusCode)[keyof typeof StatusCode];

/** A typed detail of an error, in JSON, which a client shows: such as the lines of a Buildfile. */
export type ErrorDetail = Readonly<{ type: string; value: object }>;

/** The end of a call that failed. */
export class GrpcError extends Error {
  readonly code: number;
  readonly details: readonly ErrorDetail[];

  constructor(code: number, message: string, details: readonly ErrorDetail[] = [], options?: ErrorOptions) {
    super(message, options);
    this.name = 'GrpcError';
    this.code = code;
    this.details = details;
  }
}
