import { join } from 'node:path';

import { Dockerd } from '../dockerd.ts';
import { TestEngine } from '../test-engine.ts';
import { Registries } from './registries.ts';

/** Our engine, dockerd and registries in one network namespace, without bridges. */
export class EnginesBesideRegistries implements AsyncDisposable {
  readonly engine: TestEngine;
  readonly dockerd: Dockerd;
  readonly registries: Registries;

  private constructor(engine: TestEngine, dockerd: Dockerd, registries: Registries) {
    this.engine = engine;
    this.dockerd = dockerd;
    this.registries = registries;
  }

  /** `image`: whether our engine has `busybox` loaded. `version`: that of our engine's API. */
  static async start({
    image = false,
    version = '1.24',
  }: { image?: boolean; version?: `1.${number}` } = {}): Promise<EnginesBesideRegistries> {
    const engine = await TestEngine.start({ image, version, flags: ['--bridge=none'] });
    const netns = join(engine.directory, 'netns');
    const dockerd = await Dockerd.start(['--bridge=none', '--iptables=false'], netns);
    return new EnginesBesideRegistries(engine, dockerd, await Registries.start(netns));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.registries[Symbol.asyncDispose]();
    await this.dockerd[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}
