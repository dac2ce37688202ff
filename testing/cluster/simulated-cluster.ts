import { createHash } from 'node:crypto';

import { Orchestration } from '@gantry/engine/cluster/orchestrator/orchestration.ts';
import { isJob, updateOf } from '@gantry/engine/cluster/state/defaults.ts';
import { Draft } from '@gantry/engine/cluster/state/draft.ts';
import type { NodeRecord, Records, Stored, TaskRecord } from '@gantry/engine/cluster/state/records.ts';
import { Replica } from '@gantry/engine/cluster/state/replica.ts';
import type { ServiceSpec } from '@gantry/engine/cluster/state/service-spec.ts';
import { compareStates, hasEnded, isToRun, isWanted, placeOf } from '@gantry/engine/cluster/state/task-states.ts';
import type { TaskTemplate } from '@gantry/engine/cluster/state/task-template.ts';
import type { Clock } from '@gantry/engine/lib/clock.ts';

type Task = Stored<'task'>;
type Template = Partial<Omit<TaskTemplate, 'restart'>> & { restart?: Partial<TaskTemplate['restart']>; image?: string };
type Spec = Partial<Omit<ServiceSpec, 'template'>> & { template?: Template };

/** A leader over records in memory, with its own time and nodes that do as they are told when a test says so. */
export class SimulatedCluster {
  readonly replica: Replica;
  now = Temporal.Instant.from('2026-01-01T00:00:00Z');
  /** Failures of decisions; set by a test that expects some. */
  failures: unknown[] | undefined;
  #orchestration!: Orchestration;
  #revision = 0;
  #ids = 0;

  constructor() {
    const clock: Clock = { now: () => this.now, after: () => ({ [Symbol.dispose]: () => undefined }) };
    this.replica = new Replica(clock);
    this.newLeader();
  }

  /** Seconds by which the nodes' clocks are ahead of the leader's. */
  nodesAheadSeconds = 0;

  node(id: string, over: Partial<NodeRecord> & { availability?: NodeRecord['spec']['availability'] } = {}): void {
    const { availability = 'active', ...rest } = over;
    this.change((draft) =>
      draft.put('node', {
        ...this.#dates,
        id,
        spec: { name: '', labels: {}, role: 'worker', availability },
        role: 'worker',
        description: {
          hostname: `host-${id}`,
          platform: { architecture: 'x86_64', os: 'linux' },
          resources: { nanoCpus: 4e9, memoryBytes: 8e9 },
          engine: { version: '1', labels: {}, plugins: [] },
        },
        status: { state: 'ready', message: '', address: '10.9.0.1' },
        ...rest,
      }),
    );
  }

  setNode(id: string, state: NodeRecord['status']['state'], availability?: NodeRecord['spec']['availability']): void {
    this.change((draft) => {
      const node = draft.get('node', id)!;
      const spec = { ...node.spec, availability: availability ?? node.spec.availability };
      draft.put('node', { ...node, spec, status: { ...node.status, state } });
    });
  }

  service(name: string, { template = {}, ...over }: Spec = {}): void {
    const { image = 'busybox', restart, ...rest } = template;
    const whole: TaskTemplate = {
      container: { image },
      ...rest,
      ...(restart === undefined ? {} : { restart: { condition: 'any', maxAttempts: 0, ...restart } }),
    };
    const spec: ServiceSpec = {
      name,
      labels: {},
      template: whole,
      mode: { kind: 'replicated', replicas: 1 },
      networks: [],
      ...over,
    };
    const hash = createHash('sha256')
      .update(JSON.stringify({ ...whole, constraints: [] }))
      .digest('hex')
      .slice(0, 8);
    this.change((draft) => {
      const before = draft.get('service', name);
      draft.put('template', { service: name, hash, template: whole, networks: spec.networks });
      draft.put('service', {
        ...this.#dates,
        ...(before === undefined ? {} : { previousSpec: before.spec }),
        id: name,
        spec,
        template: hash,
        ...(isJob(spec)
          ? { job: { iteration: (before?.job?.iteration ?? -1) + 1, startedAt: this.now.toString() } }
          : {}),
        endpoint: before?.endpoint ?? { ports: [], virtualIps: [] },
      });
    });
  }

  remove(name: string): void {
    this.change((draft) => draft.delete('service', name));
  }

  /** Keeps so many ended tasks of a slot. */
  keepHistory(taskHistoryRetentionLimit: number): void {
    const record = { id: 'cluster', spec: { taskHistoryRetentionLimit } } as unknown as Records['cluster'];
    this.change((draft) => draft.put('cluster', record));
  }

  /** One turn of the leader; returns when it wants the next one. */
  turn(): Temporal.Instant | undefined {
    return this.change(() => undefined);
  }

  /** Turns and obedient nodes, until nothing changes within this time. */
  settle(seconds = 60): void {
    const end = this.now.add({ seconds });
    for (;;) {
      const before = this.#revision;
      const next = this.turn();
      for (const task of this.tasks()) this.obey(task);
      if (this.#revision !== before) continue;
      if (next === undefined || Temporal.Instant.compare(next, end) > 0) return;
      this.now = next;
    }
  }

  pass(seconds: number): void {
    this.now = this.now.add({ seconds });
  }

  tasks(service?: string): Task[] {
    const all = service === undefined ? this.replica.all('task') : this.replica.tasksOf(service);
    return [...all].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** The tasks that are to run and are running. */
  running(service: string): Task[] {
    return this.tasks(service).filter(({ status, desired }) => status.state === 'running' && isToRun(desired));
  }

  /** The node of a task does its next step, if it lives. */
  obey(task: Task): void {
    const { status, desired, node } = task;
    if (hasEnded(status.state) || node === '' || this.replica.get('node', node)?.status.state !== 'ready') return;
    if (!isWanted(desired)) this.report(task, 'shutdown');
    else if (status.state === 'assigned') this.report(task, 'ready');
    else if (status.state === 'ready' && isToRun(desired)) this.report(task, 'running');
  }

  report(task: Task, state: TaskRecord['status']['state']): void {
    const timestamp = this.now.add({ seconds: this.nodesAheadSeconds }).toString();
    const startedAt = state === 'running' ? timestamp : task.status.startedAt;
    const status = { state, timestamp, message: state, ...(startedAt === undefined ? {} : { startedAt }) };
    this.change((draft) => draft.put('task', { ...task, status, updatedAt: this.now.toString() }));
  }

  /** Changes records, and lets the leader react. */
  change(work: (draft: Draft) => void): Temporal.Instant | undefined {
    const draft = new Draft(this.replica);
    work(draft);
    const next = this.#orchestration.run(draft, this.now);
    if (draft.isEmpty) return next;
    this.#revision += 1;
    this.replica.apply({ revision: this.#revision, changes: [...draft.changes] });
    return next;
  }

  /** Another manager leads from now on: it knows the records only. */
  newLeader(): void {
    const newId = (): string => `task-${String((this.#ids += 1)).padStart(6, '0')}`;
    this.#orchestration = new Orchestration(this.replica, newId, (_about, error) => {
      if (this.failures === undefined) throw error;
      this.failures.push(error);
    });
  }

  /** Places with two tasks that are to run, and no such update under way that starts first. */
  get doubled(): string[] {
    const wanted = this.tasks().filter(({ desired, status }) => isToRun(desired) && status.state !== 'complete');
    const places = Map.groupBy(wanted, (task) => `${task.service} ${placeOf(task)}`);
    return [...places].filter(([, tasks]) => tasks.length > 1 && !this.#isStartedFirst(tasks)).map(([place]) => place);
  }

  #isStartedFirst(tasks: readonly Task[]): boolean {
    const service = this.replica.get('service', tasks[0]!.service);
    const [running, ...others] = tasks.toSorted((a, b) => compareStates(b.status.state, a.status.state));
    if (service === undefined || updateOf(service).order !== 'start-first' || others.length > 1) return false;
    return others[0]!.status.state !== 'running' && others[0]!.template !== running!.template;
  }

  get #dates(): { createdAt: string; updatedAt: string } {
    return { createdAt: this.now.toString(), updatedAt: this.now.toString() };
  }
}
