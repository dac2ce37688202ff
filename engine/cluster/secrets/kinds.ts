/** Secrets and configs differ in the fields of this table only. */
export type SecretKind = 'secret' | 'config';

type Facts = Readonly<{
  /** Size of the data in bytes that is refused already. */
  limitBytes: number;
  filters: readonly string[];
  /** Whether the API shows the data. */
  isShown: boolean;
  /** Folder of relative targets in a container. */
  folder: string;
}>;

export const SECRET_KINDS: Readonly<Record<SecretKind, Facts>> = {
  secret: { limitBytes: 500 * 1024, filters: ['id', 'label', 'name', 'names'], isShown: false, folder: '/run/secrets' },
  config: { limitBytes: 1000 * 1024, filters: ['id', 'label', 'name'], isShown: true, folder: '/' },
};
