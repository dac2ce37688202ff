/**
 * The values that we need of node:http. An `import` of it reads all of its exports, and with them the parts of `fetch`:
 * 50 ms of every start, and 17 MB. One of node:tls reads all root certificates.
 */
export const { createServer, IncomingMessage, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
