import type { Command } from './command-line/command.ts';

export type Entry = {
  readonly section: 'Common' | 'Containers' | 'Images' | 'Volumes and networks' | 'Cluster' | 'Engine';
  readonly summary: string;
  /** Loaded on use, because a short command spends most of its time on loading code. */
  readonly load: () => Promise<Command>;
};

/** Every command of this program. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  run: {
    section: 'Common',
    summary: 'Create and run a new container from an image',
    load: async () => (await import('./containers/run.ts')).run,
  },
  exec: {
    section: 'Common',
    summary: 'Run a command in a running container',
    load: async () => (await import('./containers/exec.ts')).exec,
  },
  ps: { section: 'Common', summary: 'List containers', load: async () => (await import('./containers/list.ts')).ps },
  logs: {
    section: 'Common',
    summary: 'Show the output of a container',
    load: async () => (await import('./containers/logs.ts')).logs,
  },
  images: { section: 'Common', summary: 'List images', load: async () => (await import('./images/list.ts')).images },
  load: {
    section: 'Common',
    summary: 'Load images from an archive or stdin',
    load: async () => (await import('./images/archives.ts')).load,
  },
  create: {
    section: 'Containers',
    summary: 'Create a new container',
    load: async () => (await import('./containers/create.ts')).create,
  },
  start: {
    section: 'Containers',
    summary: 'Start one or more stopped containers',
    load: async () => (await import('./containers/start.ts')).start,
  },
  stop: {
    section: 'Containers',
    summary: 'Stop one or more running containers',
    load: async () => (await import('./containers/lifecycle.ts')).stop,
  },
  restart: {
    section: 'Containers',
    summary: 'Restart one or more containers',
    load: async () => (await import('./containers/lifecycle.ts')).restart,
  },
  kill: {
    section: 'Containers',
    summary: 'Send a signal to one or more running containers',
    load: async () => (await import('./containers/lifecycle.ts')).kill,
  },
  pause: {
    section: 'Containers',
    summary: 'Freeze all processes of one or more containers',
    load: async () => (await import('./containers/lifecycle.ts')).pause,
  },
  unpause: {
    section: 'Containers',
    summary: 'Resume the processes of paused containers',
    load: async () => (await import('./containers/lifecycle.ts')).unpause,
  },
  wait: {
    section: 'Containers',
    summary: 'Wait until containers end, then print their exit codes',
    load: async () => (await import('./containers/lifecycle.ts')).wait,
  },
  rename: {
    section: 'Containers',
    summary: 'Rename a container',
    load: async () => (await import('./containers/lifecycle.ts')).rename,
  },
  rm: {
    section: 'Containers',
    summary: 'Remove one or more containers',
    load: async () => (await import('./containers/lifecycle.ts')).rm,
  },
  attach: {
    section: 'Containers',
    summary: 'Connect this terminal with a running container',
    load: async () => (await import('./containers/attach.ts')).attach,
  },
  top: {
    section: 'Containers',
    summary: 'Show the processes of a container',
    load: async () => (await import('./containers/look.ts')).top,
  },
  stats: {
    section: 'Containers',
    summary: 'Show a live table of what containers use',
    load: async () => (await import('./containers/stats/stats.ts')).stats,
  },
  update: {
    section: 'Containers',
    summary: 'Change limits and restart policy of one or more containers',
    load: async () => (await import('./containers/update.ts')).update,
  },
  port: {
    section: 'Containers',
    summary: 'Show where ports of a container are published',
    load: async () => (await import('./containers/look.ts')).port,
  },
  cp: {
    section: 'Containers',
    summary: 'Copy files out of a container or into one',
    load: async () => (await import('./containers/copy.ts')).cp,
  },
  diff: {
    section: 'Containers',
    summary: 'Show the files that a container has changed',
    load: async () => (await import('./containers/files.ts')).diff,
  },
  export: {
    section: 'Containers',
    summary: 'Write the root file system of a container to an archive or stdout',
    load: async () => (await import('./containers/files.ts')).exportCommand,
  },
  build: {
    section: 'Images',
    summary: 'Build an image from a Buildfile',
    load: async () => (await import('./images/build.ts')).build,
  },
  commit: {
    section: 'Images',
    summary: 'Make an image from a container',
    load: async () => (await import('./containers/commit.ts')).commit,
  },
  import: {
    section: 'Images',
    summary: 'Make an image from the archive of a root file system',
    load: async () => (await import('./images/archives.ts')).importCommand,
  },
  save: {
    section: 'Images',
    summary: 'Save one or more images to an archive or stdout',
    load: async () => (await import('./images/archives.ts')).save,
  },
  tag: {
    section: 'Images',
    summary: 'Give an image another name',
    load: async () => (await import('./images/names.ts')).tag,
  },
  rmi: {
    section: 'Images',
    summary: 'Remove one or more images',
    load: async () => (await import('./images/names.ts')).rmi,
  },
  history: {
    section: 'Images',
    summary: 'Show the steps of an image',
    load: async () => (await import('./images/history.ts')).history,
  },
  pull: {
    section: 'Images',
    summary: 'Download an image from a registry',
    load: async () => (await import('./registry/pull.ts')).pull,
  },
  push: {
    section: 'Images',
    summary: 'Send an image to a registry',
    load: async () => (await import('./registry/push.ts')).push,
  },
  search: {
    section: 'Images',
    summary: 'Search an index for images',
    load: async () => (await import('./registry/search.ts')).search,
  },
  login: {
    section: 'Images',
    summary: 'Log in to a registry',
    load: async () => (await import('./registry/login.ts')).login,
  },
  logout: {
    section: 'Images',
    summary: 'Remove the login of a registry',
    load: async () => (await import('./registry/login.ts')).logout,
  },
  'image inspect': {
    section: 'Images',
    summary: 'Show everything about images',
    load: async () => (await import('./system/inspect.ts')).inspectImages,
  },
  'volume create': {
    section: 'Volumes and networks',
    summary: 'Create a volume',
    load: async () => (await import('./resources/volumes.ts')).createVolume,
  },
  'volume ls': {
    section: 'Volumes and networks',
    summary: 'List volumes',
    load: async () => (await import('./resources/volumes.ts')).listVolumes,
  },
  'volume inspect': {
    section: 'Volumes and networks',
    summary: 'Show everything about volumes',
    load: async () => (await import('./resources/volumes.ts')).inspectVolumes,
  },
  'volume rm': {
    section: 'Volumes and networks',
    summary: 'Remove one or more volumes',
    load: async () => (await import('./resources/volumes.ts')).removeVolumes,
  },
  'network create': {
    section: 'Volumes and networks',
    summary: 'Create a network',
    load: async () => (await import('./resources/networks.ts')).createNetwork,
  },
  'network ls': {
    section: 'Volumes and networks',
    summary: 'List networks',
    load: async () => (await import('./resources/networks.ts')).listNetworks,
  },
  'network inspect': {
    section: 'Volumes and networks',
    summary: 'Show everything about networks',
    load: async () => (await import('./resources/networks.ts')).inspectNetworks,
  },
  'network connect': {
    section: 'Volumes and networks',
    summary: 'Connect a container with a network',
    load: async () => (await import('./resources/networks.ts')).connectNetwork,
  },
  'network disconnect': {
    section: 'Volumes and networks',
    summary: 'Disconnect a container from a network',
    load: async () => (await import('./resources/networks.ts')).disconnectNetwork,
  },
  'network rm': {
    section: 'Volumes and networks',
    summary: 'Remove one or more networks',
    load: async () => (await import('./resources/networks.ts')).removeNetworks,
  },
  'plugin ls': {
    section: 'Volumes and networks',
    summary: 'List plugins',
    load: async () => (await import('./resources/plugins.ts')).listPlugins,
  },
  'plugin inspect': {
    section: 'Volumes and networks',
    summary: 'Show everything about plugins',
    load: async () => (await import('./resources/plugins.ts')).inspectPlugins,
  },
  'plugin install': {
    section: 'Volumes and networks',
    summary: 'Install a plugin from a registry and enable it',
    load: async () => (await import('./resources/plugins.ts')).installPlugin,
  },
  'plugin enable': {
    section: 'Volumes and networks',
    summary: 'Enable a plugin',
    load: async () => (await import('./resources/plugins.ts')).enablePlugin,
  },
  'plugin disable': {
    section: 'Volumes and networks',
    summary: 'Disable a plugin',
    load: async () => (await import('./resources/plugins.ts')).disablePlugin,
  },
  'plugin rm': {
    section: 'Volumes and networks',
    summary: 'Remove one or more plugins',
    load: async () => (await import('./resources/plugins.ts')).removePlugins,
  },
  'swarm ca': {
    section: 'Cluster',
    summary: 'Show the root certificate of the cluster, or replace it',
    load: async () => (await import('./cluster/swarm.ts')).showAuthority,
  },
  'swarm init': {
    section: 'Cluster',
    summary: 'Make a cluster of this node',
    load: async () => (await import('./cluster/swarm.ts')).initSwarm,
  },
  'swarm join': {
    section: 'Cluster',
    summary: 'Join a cluster',
    load: async () => (await import('./cluster/swarm.ts')).joinSwarm,
  },
  'swarm join-token': {
    section: 'Cluster',
    summary: 'Show how nodes join, or change the token',
    load: async () => (await import('./cluster/swarm.ts')).joinToken,
  },
  'swarm leave': {
    section: 'Cluster',
    summary: 'Leave the cluster',
    load: async () => (await import('./cluster/swarm.ts')).leaveSwarm,
  },
  'swarm unlock': {
    section: 'Cluster',
    summary: 'Unlock this manager by the key of the cluster',
    load: async () => (await import('./cluster/swarm.ts')).unlockSwarm,
  },
  'swarm unlock-key': {
    section: 'Cluster',
    summary: 'Show the key that unlocks managers, or change it',
    load: async () => (await import('./cluster/swarm.ts')).showUnlockKey,
  },
  'swarm update': {
    section: 'Cluster',
    summary: 'Change settings of the cluster',
    load: async () => (await import('./cluster/swarm.ts')).updateSwarm,
  },
  'node ls': {
    section: 'Cluster',
    summary: 'List the nodes of the cluster',
    load: async () => (await import('./cluster/nodes.ts')).listNodes,
  },
  'node ps': {
    section: 'Cluster',
    summary: 'List the tasks of nodes',
    load: async () => (await import('./cluster/nodes.ts')).nodeTasks,
  },
  'node inspect': {
    section: 'Cluster',
    summary: 'Show everything about nodes',
    load: async () => (await import('./cluster/nodes.ts')).inspectNodes,
  },
  'node update': {
    section: 'Cluster',
    summary: 'Change availability, labels or role of a node',
    load: async () => (await import('./cluster/nodes.ts')).updateNode,
  },
  'node promote': {
    section: 'Cluster',
    summary: 'Make nodes managers',
    load: async () => (await import('./cluster/nodes.ts')).promoteNodes,
  },
  'node demote': {
    section: 'Cluster',
    summary: 'Make managers workers',
    load: async () => (await import('./cluster/nodes.ts')).demoteNodes,
  },
  'node rm': {
    section: 'Cluster',
    summary: 'Remove nodes from the cluster',
    load: async () => (await import('./cluster/nodes.ts')).removeNodes,
  },
  'service create': {
    section: 'Cluster',
    summary: 'Create a service',
    load: async () => (await import('./cluster/create-service.ts')).createService,
  },
  'service ls': {
    section: 'Cluster',
    summary: 'List services',
    load: async () => (await import('./cluster/services.ts')).listServices,
  },
  'service ps': {
    section: 'Cluster',
    summary: 'List the tasks of services, with the reasons of failures',
    load: async () => (await import('./cluster/services.ts')).serviceTasks,
  },
  'service logs': {
    section: 'Cluster',
    summary: 'Show the output of all tasks of a service, or of one task',
    load: async () => (await import('./cluster/service-logs.ts')).serviceLogs,
  },
  'service inspect': {
    section: 'Cluster',
    summary: 'Show everything about services',
    load: async () => (await import('./cluster/services.ts')).inspectServices,
  },
  'service update': {
    section: 'Cluster',
    summary: 'Change a service',
    load: async () => (await import('./cluster/update-service.ts')).updateService,
  },
  'service scale': {
    section: 'Cluster',
    summary: 'Change how many tasks services have',
    load: async () => (await import('./cluster/update-service.ts')).scaleServices,
  },
  'service rollback': {
    section: 'Cluster',
    summary: 'Take the last update of a service back',
    load: async () => (await import('./cluster/update-service.ts')).rollbackService,
  },
  'service rm': {
    section: 'Cluster',
    summary: 'Remove services',
    load: async () => (await import('./cluster/services.ts')).removeServices,
  },
  'secret create': {
    section: 'Cluster',
    summary: 'Store a secret for services',
    load: async () => (await import('./cluster/secrets.ts')).secretCommands.create,
  },
  'secret ls': {
    section: 'Cluster',
    summary: 'List secrets',
    load: async () => (await import('./cluster/secrets.ts')).secretCommands.ls,
  },
  'secret inspect': {
    section: 'Cluster',
    summary: 'Show everything about secrets but their values',
    load: async () => (await import('./cluster/secrets.ts')).secretCommands.inspect,
  },
  'secret rm': {
    section: 'Cluster',
    summary: 'Remove secrets',
    load: async () => (await import('./cluster/secrets.ts')).secretCommands.rm,
  },
  'config create': {
    section: 'Cluster',
    summary: 'Store a config for services',
    load: async () => (await import('./cluster/secrets.ts')).configCommands.create,
  },
  'config ls': {
    section: 'Cluster',
    summary: 'List configs',
    load: async () => (await import('./cluster/secrets.ts')).configCommands.ls,
  },
  'config inspect': {
    section: 'Cluster',
    summary: 'Show everything about configs',
    load: async () => (await import('./cluster/secrets.ts')).configCommands.inspect,
  },
  'config rm': {
    section: 'Cluster',
    summary: 'Remove configs',
    load: async () => (await import('./cluster/secrets.ts')).configCommands.rm,
  },
  'task ls': {
    section: 'Cluster',
    summary: 'List the tasks of all services',
    load: async () => (await import('./cluster/tasks.ts')).listTasks,
  },
  'task inspect': {
    section: 'Cluster',
    summary: 'Show everything about tasks',
    load: async () => (await import('./cluster/tasks.ts')).inspectTasks,
  },
  inspect: {
    section: 'Engine',
    summary: 'Show everything about containers, images, volumes or networks',
    load: async () => (await import('./system/inspect.ts')).inspect,
  },
  'container inspect': {
    section: 'Containers',
    summary: 'Show everything about containers',
    load: async () => (await import('./system/inspect.ts')).inspectContainers,
  },
  events: {
    section: 'Engine',
    summary: 'Show events as they happen',
    load: async () => (await import('./system/events.ts')).events,
  },
  info: {
    section: 'Engine',
    summary: 'Show facts about the engine and its machine',
    load: async () => (await import('./system/info.ts')).info,
  },
  version: {
    section: 'Engine',
    summary: 'Show the versions of this program and of the engine',
    load: async () => (await import('./system/version.ts')).version,
  },
  'container prune': {
    section: 'Containers',
    summary: 'Remove all stopped containers',
    load: async () => (await import('./system/prune.ts')).pruneContainers,
  },
  'image prune': {
    section: 'Images',
    summary: 'Remove images without a name, or all unused ones',
    load: async () => (await import('./system/prune.ts')).pruneImages,
  },
  'volume prune': {
    section: 'Volumes and networks',
    summary: 'Remove volumes that no container uses',
    load: async () => (await import('./system/prune.ts')).pruneVolumes,
  },
  'network prune': {
    section: 'Volumes and networks',
    summary: 'Remove networks that no container uses',
    load: async () => (await import('./system/prune.ts')).pruneNetworks,
  },
  'builder prune': {
    section: 'Images',
    summary: 'Remove the caches of builds',
    load: async () => (await import('./system/prune.ts')).pruneCaches,
  },
  'system prune': {
    section: 'Engine',
    summary: 'Remove stopped containers, and unused networks, images and caches',
    load: async () => (await import('./system/prune.ts')).pruneSystem,
  },
  'system df': {
    section: 'Engine',
    summary: 'Show the disk usage',
    load: async () => (await import('./system/disk-usage.ts')).diskUsage,
  },
  completion: {
    section: 'Engine',
    summary: 'Print the completion script for a shell',
    load: async () => (await import('./command-line/completion.ts')).completion,
  },
};
