/**
 * Lines about jobs for docker's command line, at version 1.41; `wait SERVICE STATE COUNT` as in `swarm-lines.ts`. The iteration of
 * a task is in its answer alone, which the test compares too.
 */

const row = (format: string): string => `--format '${format}'`;
const tasks = `--no-trunc ${row('{{.Name}}/{{.Image}}/{{.DesiredState}}/{{.CurrentState}}/{{.Error}}')}`;
const services = row('{{.Name}}/{{.Mode}}/{{.Replicas}}/{{.Image}}/{{.Ports}}');
const inspect = (what: string, name: string): string => `service inspect --format '{{json .${what}}}' ${name}`;
const create = 'service create --detach --no-resolve-image';

export const JOB_LINES: readonly string[] = [
  'swarm init --advertise-addr 127.0.0.1 --listen-addr 127.0.0.1:2377',

  // Refused.
  `${create} --name x --mode replicated-job --update-delay 1s busybox true`,
  `${create} --name x --mode global-job --replicas 2 busybox true`,
  `${create} --name x --mode replicated --max-concurrent 2 busybox true`,
  `${create} --name x --mode global --max-concurrent 2 busybox true`,

  // Replicated jobs.
  `${create} --name two --mode replicated-job --replicas 4 --max-concurrent 2 busybox true`,
  'wait two complete 4',
  `service ps ${tasks} two`,
  inspect('Spec.Mode', 'two'),
  inspect('JobStatus.JobIteration', 'two'),
  inspect('Endpoint', 'two'),
  `${create} --name default --mode replicated-job busybox true`,
  'wait default complete 1',
  inspect('Spec', 'default'),
  `${create} --name many --mode replicated-job --replicas 3 --publish 8099:80 busybox sleep 1000`,
  'wait many running 3',
  `service ps ${tasks} many`,
  `${create} --name wide --mode replicated-job --max-concurrent 3 --replicas 2 busybox sleep 1000`,
  'wait wide running 2',
  `service ls ${services}`,
  `service ls ${services} --filter mode=replicated-job`,
  `service ls ${services} --filter mode=replicated`,
  'service inspect --pretty two',

  // A job runs again at each update.
  'service update --detach --force two',
  'wait two complete 8',
  inspect('JobStatus.JobIteration', 'two'),
  inspect('PreviousSpec', 'two'),
  inspect('UpdateStatus', 'two'),
  `service ps ${tasks} two`,
  'service update --detach --update-delay 2s two',
  'service update --detach --replicas 2 two',
  'service update --detach --label-add a=b default',
  'wait default complete 2',
  inspect('JobStatus.JobIteration', 'default'),
  'service scale --detach default=2',
  'wait default complete 4',
  inspect('Spec.Mode', 'default'),
  'service rollback --detach default',
  'wait default complete 5',
  inspect('JobStatus.JobIteration', 'default'),
  inspect('Spec.Mode', 'default'),
  `service ls ${services}`,

  // Failures.
  `${create} --name none --mode replicated-job --restart-condition none busybox sh -c 'exit 3'`,
  'wait none failed 1',
  `service ps ${tasks} none`,
  `${create} --name again --mode replicated-job --restart-condition on-failure --restart-max-attempts 1 --restart-delay 1ms busybox sh -c 'exit 4'`,
  'wait again failed 2',
  `service ps ${tasks} again`,

  // Global jobs.
  `${create} --name each --mode global-job busybox true`,
  'wait each complete 1',
  `service ps ${row('{{.Image}}/{{.DesiredState}}/{{.CurrentState}}')} each`,
  inspect('Spec.Mode', 'each'),
  `${create} --name nowhere --mode global-job --constraint node.labels.a==b busybox true`,
  `service ps -q nowhere`,
  `service ls ${services}`,
  'service scale each=2',
  'service rm many wide two default none again each nowhere',
  'service ls -q',
];
