import { Nothing } from '../messages/common.ts';
import { HealthRequest, HealthResponse } from '../messages/session.ts';
import { unary, type Methods } from '../wire/service.ts';

const SERVING = 1;

/** Health, and traces, which are accepted and dropped. */
export const otherMethods: Methods = new Map([
  ['/grpc.health.v1.Health/Check', unary(HealthRequest, HealthResponse, () => ({ status: SERVING }))],
  ['/opentelemetry.proto.collector.trace.v1.TraceService/Export', unary(Nothing, Nothing, () => ({}))],
]);
