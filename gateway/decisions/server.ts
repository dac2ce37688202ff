import type { Server } from 'node:http';

import type { Gateway } from '../gateway.ts';
import { createHttpServer } from '../proxy/server.ts';
import { handleQuestion } from './handle-question.ts';

/** The HTTP server for proxies that ask about requests. Headers of these requests, such as Upgrade, have no effect on it. */
export function createDecisionServer(gateway: Gateway): Server {
  return createHttpServer(
    gateway,
    false,
    (req, res) => handleQuestion(gateway, req, res),
    () => false,
  );
}
