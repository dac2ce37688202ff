/**
 * `./gantry bench [engine|networks|registry|builds|buildkit|start|health|limiter|gateway|cluster|services|soak|users|page] [part of a name]`:
 * every budget with its ratio.
 */
const [name = 'engine', ...more] = process.argv.slice(2);
const benches: Record<string, () => Promise<{ main: (...more: string[]) => Promise<void> }>> = {
  engine: async () => await import('./engine.ts'),
  networks: async () => await import('./networks/networks.ts'),
  limiter: async () => await import('./limiter/main.ts'),
  gateway: async () => await import('./gateway/main.ts'),
  start: async () => await import('./start.ts'),
  health: async () => await import('./health.ts'),
  registry: async () => await import('./registry.ts'),
  builds: async () => await import('./builds/beside-podman.ts'),
  buildkit: async () => await import('./builds/buildkit.ts'),
  cluster: async () => await import('./cluster/simulation.ts'),
  services: async () => await import('./cluster/services.ts'),
  soak: async () => await import('./soak.ts'),
  users: async () => await import('./users.ts'),
  page: async () => await import('./page.ts'),
};

const load = benches[name];
if (load === undefined) {
  console.error(`no bench named ${name}; there are: ${Object.keys(benches).join(', ')}`);
  process.exit(2);
}
const bench = await load();
await bench.main(...more);
