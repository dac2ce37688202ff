/**
 * What we need of node:http as values. An `import` of it reads all that it exports, and among that is what `fetch` is made
 * of: 50 ms of every start, and 17 MB. One of node:tls reads all root certificates.
 */
export const { createServer, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
