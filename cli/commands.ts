import type { Command } from './command-line/command.ts';

export type Entry = Readonly<{
  section: string;
  summary: string;
  /** Loaded on use, because a short command spends most of its time on loading code. */
  load: () => Promise<Command>;
}>;
type Row = readonly [summary: string, load: Entry['load']];

const archives = async () => await import('./images/archives.ts');
const lifecycle = async () => await import('./containers/lifecycle.ts');
const look = async () => await import('./containers/look.ts');
const files = async () => await import('./containers/files.ts');
const names = async () => await import('./images/names.ts');
const login = async () => await import('./registry/login.ts');
const inspect = async () => await import('./system/inspect.ts');
const volumes = async () => await import('./resources/volumes.ts');
const networks = async () => await import('./resources/networks.ts');
const plugins = async () => await import('./resources/plugins.ts');
const swarm = async () => await import('./cluster/swarm.ts');
const nodes = async () => await import('./cluster/nodes.ts');
const services = async () => await import('./cluster/services.ts');
const updateService = async () => await import('./cluster/update-service.ts');
const secrets = async () => await import('./cluster/secrets.ts');
const tasks = async () => await import('./cluster/tasks.ts');
const prune = async () => await import('./system/prune.ts');

const SECTIONS: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  Common: {
    run: ['Create and run a new container from an image', async () => (await import('./containers/run.ts')).run],
    exec: ['Run a command in a running container', async () => (await import('./containers/exec.ts')).exec],
    ps: ['List containers', async () => (await import('./containers/list.ts')).ps],
    logs: ['Show the output of a container', async () => (await import('./containers/logs.ts')).logs],
    images: ['List images', async () => (await import('./images/list.ts')).images],
    load: ['Load images from an archive or stdin', async () => (await archives()).load],
  },
  Containers: {
    create: ['Create a new container', async () => (await import('./containers/create.ts')).create],
    start: ['Start one or more stopped containers', async () => (await import('./containers/start.ts')).start],
    stop: ['Stop one or more running containers', async () => (await lifecycle()).stop],
    restart: ['Restart one or more containers', async () => (await lifecycle()).restart],
    kill: ['Send a signal to one or more running containers', async () => (await lifecycle()).kill],
    pause: ['Freeze all processes of one or more containers', async () => (await lifecycle()).pause],
    unpause: ['Resume the processes of paused containers', async () => (await lifecycle()).unpause],
    wait: ['Wait until containers end, then print their exit codes', async () => (await lifecycle()).wait],
    rename: ['Rename a container', async () => (await lifecycle()).rename],
    rm: ['Remove one or more containers', async () => (await lifecycle()).rm],
    attach: [
      'Connect this terminal with a running container',
      async () => (await import('./containers/attach.ts')).attach,
    ],
    top: ['Show the processes of a container', async () => (await look()).top],
    stats: [
      'Show a live table of what containers use',
      async () => (await import('./containers/stats/stats.ts')).stats,
    ],
    update: [
      'Change limits and restart policy of one or more containers',
      async () => (await import('./containers/update.ts')).update,
    ],
    port: ['Show where ports of a container are published', async () => (await look()).port],
    cp: ['Copy files out of a container or into one', async () => (await import('./containers/copy.ts')).cp],
    diff: ['Show the files that a container has changed', async () => (await files()).diff],
    export: [
      'Write the root file system of a container to an archive or stdout',
      async () => (await files()).exportCommand,
    ],
    'container inspect': ['Show everything about containers', async () => (await inspect()).inspectContainers],
    'container prune': ['Remove all stopped containers', async () => (await prune()).pruneContainers],
  },
  Images: {
    build: ['Build an image from a Buildfile', async () => (await import('./images/build.ts')).build],
    commit: ['Make an image from a container', async () => (await import('./containers/commit.ts')).commit],
    import: ['Make an image from the archive of a root file system', async () => (await archives()).importCommand],
    save: ['Save one or more images to an archive or stdout', async () => (await archives()).save],
    tag: ['Give an image another name', async () => (await names()).tag],
    rmi: ['Remove one or more images', async () => (await names()).rmi],
    history: ['Show the steps of an image', async () => (await import('./images/history.ts')).history],
    pull: ['Download an image from a registry', async () => (await import('./registry/pull.ts')).pull],
    push: ['Send an image to a registry', async () => (await import('./registry/push.ts')).push],
    search: ['Search an index for images', async () => (await import('./registry/search.ts')).search],
    login: ['Log in to a registry', async () => (await login()).login],
    logout: ['Remove the login of a registry', async () => (await login()).logout],
    'image inspect': ['Show everything about images', async () => (await inspect()).inspectImages],
    'image prune': ['Remove images without a name, or all unused ones', async () => (await prune()).pruneImages],
    'builder prune': ['Remove the caches of builds', async () => (await prune()).pruneCaches],
  },
  'Volumes and networks': {
    'volume create': ['Create a volume', async () => (await volumes()).createVolume],
    'volume ls': ['List volumes', async () => (await volumes()).listVolumes],
    'volume inspect': ['Show everything about volumes', async () => (await volumes()).inspectVolumes],
    'volume rm': ['Remove one or more volumes', async () => (await volumes()).removeVolumes],
    'network create': ['Create a network', async () => (await networks()).createNetwork],
    'network ls': ['List networks', async () => (await networks()).listNetworks],
    'network inspect': ['Show everything about networks', async () => (await networks()).inspectNetworks],
    'network connect': ['Connect a container with a network', async () => (await networks()).connectNetwork],
    'network disconnect': ['Disconnect a container from a network', async () => (await networks()).disconnectNetwork],
    'network rm': ['Remove one or more networks', async () => (await networks()).removeNetworks],
    'plugin ls': ['List plugins', async () => (await plugins()).listPlugins],
    'plugin inspect': ['Show everything about plugins', async () => (await plugins()).inspectPlugins],
    'plugin install': ['Install a plugin from a registry and enable it', async () => (await plugins()).installPlugin],
    'plugin enable': ['Enable a plugin', async () => (await plugins()).enablePlugin],
    'plugin disable': ['Disable a plugin', async () => (await plugins()).disablePlugin],
    'plugin rm': ['Remove one or more plugins', async () => (await plugins()).removePlugins],
    'volume prune': ['Remove volumes that no container uses', async () => (await prune()).pruneVolumes],
    'network prune': ['Remove networks that no container uses', async () => (await prune()).pruneNetworks],
  },
  Cluster: {
    'swarm ca': ['Show the root certificate of the cluster, or replace it', async () => (await swarm()).showAuthority],
    'swarm init': ['Make a cluster of this node', async () => (await swarm()).initSwarm],
    'swarm join': ['Join a cluster', async () => (await swarm()).joinSwarm],
    'swarm join-token': ['Show how nodes join, or change the token', async () => (await swarm()).joinToken],
    'swarm leave': ['Leave the cluster', async () => (await swarm()).leaveSwarm],
    'swarm unlock': ['Unlock this manager by the key of the cluster', async () => (await swarm()).unlockSwarm],
    'swarm unlock-key': ['Show the key that unlocks managers, or change it', async () => (await swarm()).showUnlockKey],
    'swarm update': ['Change settings of the cluster', async () => (await swarm()).updateSwarm],
    'node ls': ['List the nodes of the cluster', async () => (await nodes()).listNodes],
    'node ps': ['List the tasks of nodes', async () => (await nodes()).nodeTasks],
    'node inspect': ['Show everything about nodes', async () => (await nodes()).inspectNodes],
    'node update': ['Change availability, labels or role of a node', async () => (await nodes()).updateNode],
    'node promote': ['Make nodes managers', async () => (await nodes()).promoteNodes],
    'node demote': ['Make managers workers', async () => (await nodes()).demoteNodes],
    'node rm': ['Remove nodes from the cluster', async () => (await nodes()).removeNodes],
    'service create': ['Create a service', async () => (await import('./cluster/create-service.ts')).createService],
    'service ls': ['List services', async () => (await services()).listServices],
    'service ps': [
      'List the tasks of services, with the reasons of failures',
      async () => (await services()).serviceTasks,
    ],
    'service logs': [
      'Show the output of all tasks of a service, or of one task',
      async () => (await import('./cluster/service-logs.ts')).serviceLogs,
    ],
    'service inspect': ['Show everything about services', async () => (await services()).inspectServices],
    'service update': ['Change a service', async () => (await updateService()).updateService],
    'service scale': ['Change how many tasks services have', async () => (await updateService()).scaleServices],
    'service rollback': ['Take the last update of a service back', async () => (await updateService()).rollbackService],
    'service rm': ['Remove services', async () => (await services()).removeServices],
    'secret create': ['Store a secret for services', async () => (await secrets()).secretCommands.create],
    'secret ls': ['List secrets', async () => (await secrets()).secretCommands.ls],
    'secret inspect': [
      'Show everything about secrets but their values',
      async () => (await secrets()).secretCommands.inspect,
    ],
    'secret rm': ['Remove secrets', async () => (await secrets()).secretCommands.rm],
    'config create': ['Store a config for services', async () => (await secrets()).configCommands.create],
    'config ls': ['List configs', async () => (await secrets()).configCommands.ls],
    'config inspect': ['Show everything about configs', async () => (await secrets()).configCommands.inspect],
    'config rm': ['Remove configs', async () => (await secrets()).configCommands.rm],
    'task ls': ['List the tasks of all services', async () => (await tasks()).listTasks],
    'task inspect': ['Show everything about tasks', async () => (await tasks()).inspectTasks],
  },
  Engine: {
    inspect: ['Show everything about containers, images, volumes or networks', async () => (await inspect()).inspect],
    events: ['Show events as they happen', async () => (await import('./system/events.ts')).events],
    info: ['Show facts about the engine and its machine', async () => (await import('./system/info.ts')).info],
    version: [
      'Show the versions of this program and of the engine',
      async () => (await import('./system/version.ts')).version,
    ],
    'system prune': [
      'Remove stopped containers, and unused networks, images and caches',
      async () => (await prune()).pruneSystem,
    ],
    'system df': ['Show the disk usage', async () => (await import('./system/disk-usage.ts')).diskUsage],
    page: [
      'Print the address of a page that shows and drives the engine',
      async () => (await import('./system/page.ts')).page,
    ],
    completion: [
      'Print the completion script for a shell',
      async () => (await import('./command-line/completion.ts')).completion,
    ],
  },
};

/** Every command of this program. */
export const COMMANDS: Readonly<Record<string, Entry>> = Object.fromEntries(
  Object.entries(SECTIONS).flatMap(([section, rows]) =>
    Object.entries(rows).map(([name, [summary, load]]) => [name, { section, summary, load }]),
  ),
);
