import { goArchitecture } from '../../images/configuration/architecture.ts';
import { platformText } from '../../images/configuration/platform.ts';
import type { StageState } from '../stage.ts';

/** Architectures whose programs a processor runs besides its own. */
const ALSO_RUN: ReadonlyMap<string, string> = new Map([
  ['amd64', '386'],
  ['arm64', 'arm'],
]);

/** Runs a step; its failure is explained where this machine runs no programs of the image by itself. */
export async function explainForeign<T>(state: StageState, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const platform = state.platform ?? state.image;
    const own = goArchitecture();
    if (platform !== undefined && platform.architecture !== own && platform.architecture !== ALSO_RUN.get(own)) {
      const name = platformText({ ...platform, os: 'linux' });
      state.output.errorText(
        `RUN for ${name} failed: its programs need an interpreter on this machine, such as qemu's (binfmt_misc)\n`,
      );
    }
    throw error;
  }
}
