import { Connection, type Answer, type RequestOptions } from '@gantry/client/connection.ts';

/** Raw requests to an engine on a Unix socket: the same for ours and for dockerd, so that both can be compared. */
export class Api extends Connection {
  readonly socketPath: string;

  constructor(socketPath: string, prefix?: string) {
    super({ kind: 'unix', socketPath }, prefix);
    this.socketPath = socketPath;
  }

  async get<T = unknown>(path: string, options?: RequestOptions): Promise<Answer<T>> {
    return await this.request<T>('GET', path, options);
  }

  async post<T = unknown>(path: string, body?: unknown, options?: RequestOptions): Promise<Answer<T>> {
    return await this.request<T>('POST', path, { ...options, body });
  }

  async delete<T = unknown>(path: string, options?: RequestOptions): Promise<Answer<T>> {
    return await this.request<T>('DELETE', path, options);
  }
}
