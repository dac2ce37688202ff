import { readdirSync, readFileSync } from 'node:fs';

import { countOf, durationsOf, type BuildFailure } from '../../lib/measures.ts';
import { infoOf, type InfoNeeds } from '../info/info.ts';
import { histogramText, metricText, type Sample } from './text.ts';

const BUILD_FAILURES: readonly BuildFailure[] = [
  'build_canceled',
  'dockerfile_syntax_error',
  'error_processing_commands_error',
];

/** Everything that `--metrics-addr` serves. The names are dockerd's; `stop`, `exec` and the build steps are ours. */
export function engineMetrics(engine: InfoNeeds): string {
  const info = infoOf(engine);
  return [ofEngine(engine, info), ofOperations(), ofBuilds(), ofProcess()].join('');
}

function ofEngine(engine: InfoNeeds, info: ReturnType<typeof infoOf>): string {
  return [
    metricText(
      'engine_daemon_container_states_containers',
      'gauge',
      'The count of containers in various states',
      by('state', { paused: info.ContainersPaused, running: info.ContainersRunning, stopped: info.ContainersStopped }),
    ),
    metricText(
      'engine_daemon_engine_cpus_cpus',
      'gauge',
      'The number of cpus that the host system of the engine has',
      one(info.NCPU),
    ),
    metricText('engine_daemon_engine_info', 'gauge', 'The information related to the engine and the OS it runs on', [
      [
        {
          architecture: info.Architecture,
          commit: '',
          daemon_id: info.ID,
          graphdriver: info.Driver,
          kernel: info.KernelVersion,
          os: info.OperatingSystem,
          os_type: info.OSType,
          os_version: info.OSVersion,
          version: info.ServerVersion,
        },
        1,
      ],
    ]),
    metricText(
      'engine_daemon_engine_memory_bytes',
      'gauge',
      'The number of bytes of memory that the host system of the engine has',
      one(info.MemTotal),
    ),
    metricText(
      'engine_daemon_events_subscribers_total',
      'gauge',
      'The number of current subscribers to events',
      one(engine.events.listenerCount),
    ),
    metricText('engine_daemon_events_total', 'counter', 'The number of events logged', one(engine.events.emitted)),
    metricText(
      'engine_daemon_health_checks_failed_total',
      'counter',
      'The total number of failed health checks',
      one(countOf('healthChecksFailed')),
    ),
    metricText(
      'engine_daemon_health_checks_total',
      'counter',
      'The total number of health checks',
      one(countOf('healthChecks')),
    ),
  ].join('');
}

function ofOperations(): string {
  return [
    histogramText(
      'engine_daemon_container_actions_seconds',
      'The number of seconds it takes to process each container action',
      'action',
      durationsOf('container'),
    ),
    histogramText(
      'engine_daemon_image_actions_seconds',
      'The number of seconds it takes to process each image action',
      'action',
      durationsOf('image'),
    ),
    histogramText(
      'engine_daemon_network_actions_seconds',
      'The number of seconds it takes to process each network action',
      'action',
      durationsOf('network'),
    ),
  ].join('');
}

function ofBuilds(): string {
  const failures = Object.fromEntries(BUILD_FAILURES.map((reason) => [reason, countOf(reason)]));
  return [
    metricText('builder_builds_failed_total', 'counter', 'Number of failed image builds', by('reason', failures)),
    metricText('builder_builds_triggered_total', 'counter', 'Number of triggered image builds', one(countOf('builds'))),
    histogramText(
      'builder_steps_seconds',
      'The number of seconds that steps of builds take, by their instruction',
      'instruction',
      durationsOf('buildStep'),
    ),
  ].join('');
}

/** The usual ones of a process, which dashboards expect. */
function ofProcess(): string {
  const { user, system } = process.cpuUsage();
  return [
    metricText(
      'process_cpu_seconds_total',
      'counter',
      'Total user and system CPU time spent in seconds.',
      one((user + system) / 1e6),
    ),
    metricText('process_max_fds', 'gauge', 'Maximum number of open file descriptors.', one(maxDescriptors())),
    metricText(
      'process_open_fds',
      'gauge',
      'Number of open file descriptors.',
      one(readdirSync('/proc/self/fd').length),
    ),
    metricText(
      'process_resident_memory_bytes',
      'gauge',
      'Resident memory size in bytes.',
      one(process.memoryUsage.rss()),
    ),
    metricText(
      'process_start_time_seconds',
      'gauge',
      'Start time of the process since unix epoch in seconds.',
      one(performance.timeOrigin / 1000),
    ),
    metricText('nodejs_heap_used_bytes', 'gauge', 'Memory of objects, in bytes.', one(process.memoryUsage().heapUsed)),
  ].join('');
}

function maxDescriptors(): number {
  const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return Number(soft);
}

function one(value: number): Sample[] {
  return [[{}, value]];
}

function by(label: string, values: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(values).map(([name, value]): Sample => [{ [label]: name }, value]);
}
