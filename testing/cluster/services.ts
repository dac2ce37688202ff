import { eventually } from '../eventually.ts';
import type { ClusterHost } from './hosts.ts';

/** Fields of a task that tests read. */
export type TaskWire = {
  ID: string;
  ServiceID: string;
  NodeID?: string;
  Slot?: number;
  DesiredState: string;
  Status: {
    State: string;
    Message: string;
    Err?: string;
    ContainerStatus?: { ContainerID: string; PID: number; ExitCode: number };
  };
};

/** A command that ends at once when it is told to, unlike `sleep` as the first process. */
export const SLEEPS = ['sh', '-c', 'trap "exit 0" TERM; sleep 100000 & wait'];

/** The services of a cluster as one of its managers has them. */
export class Services {
  readonly #manager: ClusterHost;

  constructor(manager: ClusterHost) {
    this.#manager = manager;
  }

  /** Creates a service of `busybox`; its id. */
  async create(
    Name: string,
    ContainerSpec: object = {},
    more: object = {},
    headers?: Record<string, string>,
  ): Promise<string> {
    const { TaskTemplate = {}, ...rest } = more as { TaskTemplate?: object };
    const body = {
      Name,
      TaskTemplate: { ContainerSpec: { Image: 'busybox', Command: SLEEPS, ...ContainerSpec }, ...TaskTemplate },
      ...rest,
    };
    const answer = await this.#manager.engine.post<{ ID: string }>('/services/create', body, headers && { headers });
    if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${answer.raw.toString()}`);
    return answer.body.ID;
  }

  async remove(name: string): Promise<void> {
    const answer = await this.#manager.engine.delete(`/services/${name}`);
    if (answer.status !== 200) throw new Error(`removal answered ${answer.status}: ${answer.raw.toString()}`);
  }

  /** Replaces fields of the specification, again where another change came first. */
  async update(name: string, change: (spec: Record<string, unknown>) => Record<string, unknown>): Promise<void> {
    await eventually(`the update of ${name}`, async () => {
      type Service = { ID: string; Version: { Index: number }; Spec: Record<string, unknown> };
      const { body } = await this.#manager.engine.get<Service>(`/services/${name}`);
      const path = `/services/${body.ID}/update?version=${body.Version.Index}`;
      return (await this.#manager.engine.post(path, change(body.Spec))).status === 200 ? true : undefined;
    });
  }

  async tasks(service: string): Promise<TaskWire[]> {
    const filters = encodeURIComponent(JSON.stringify({ service: [service] }));
    const { status, body, raw } = await this.#manager.engine.get<TaskWire[]>(`/tasks?filters=${filters}`);
    if (status !== 200) throw new Error(`GET /tasks answered ${status}: ${raw.toString()}`);
    return body;
  }

  /** The first task of a service that is as expected, once there is one. */
  async task(service: string, isExpected: (task: TaskWire) => boolean): Promise<TaskWire> {
    let seen = '';
    return await eventually(`a task of ${service}`, async () => {
      const tasks = await this.tasks(service);
      seen = tasks.map(({ DesiredState, Status }) => `${DesiredState}: ${JSON.stringify(Status)}`).join('\n');
      const found = tasks.find(isExpected);
      if (found === undefined) throw new Error(`there are only these:\n${seen}`);
      return found;
    });
  }

  async inState(service: string, state: string): Promise<TaskWire> {
    return await this.task(service, ({ Status }) => Status.State === state);
  }

  /** So many tasks that are to run and do. */
  async running(service: string, count: number): Promise<TaskWire[]> {
    return await eventually(`${count} tasks of ${service}`, async () => {
      const all = await this.tasks(service);
      const running = all.filter(
        ({ DesiredState, Status }) => DesiredState === 'running' && Status.State === 'running',
      );
      if (running.length !== count) throw new Error(JSON.stringify(all.map(({ Status }) => Status)));
      return running;
    });
  }
}
