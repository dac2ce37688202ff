import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A CA in `folder` with certificates for `server` and `client`; that for `foreign` is of another CA. */
export function makeCertificates(folder: string): void {
  const openssl = (...words: string[]): void => void execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
  writeFileSync(join(folder, 'extensions'), 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n');
  for (const [ca, names] of [
    ['ca', ['server', 'client']],
    ['other-ca', ['foreign']],
  ] as const) {
    openssl(
      ...`req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=${ca}`.split(' '),
      '-keyout',
      `${ca}-key.pem`,
      '-out',
      `${ca}.pem`,
    );
    for (const name of names) {
      openssl(
        ...`req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=${name}`.split(' '),
        '-keyout',
        `${name}-key.pem`,
        '-out',
        `${name}.csr`,
      );
      openssl(
        ...`x509 -req -days 2 -CAcreateserial -extfile extensions -CA ${ca}.pem -CAkey ${ca}-key.pem -in ${name}.csr -out ${name}.pem`.split(
          ' ',
        ),
      );
    }
  }
}
