/** The language of a Buildfile: that of the classic builder of dockerd 20.10, or that of BuildKit, which has more flags. */
export type Dialect = 'classic' | 'buildkit';
