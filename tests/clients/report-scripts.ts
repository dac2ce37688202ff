/** A script of a public report about docker's functions of 1.24, for bash; `$D` is the name of its containers and images. */
export type Report = readonly [report: string, about: string, script: string];

const IGNORED =
  'mkdir -p photos recipes dir docker/app; touch hi.txt ignoreme.txt photos/steak.jpeg recipes/cake.txt dir/file1 dir/file2';
const listed = 'docker build -q -t $D . >/dev/null 2>&1; echo built $?; docker run --rm $D find /srv -type f | sort';

/** Reports of moby, compose, docker-py, podman and testcontainers, each tried on ours and on dockerd. */
export const REPORTS: readonly Report[] = [
  [
    'moby 17911',
    'COPY * with an ignored Dockerfile',
    `${IGNORED}; printf 'Dockerfile\\n.dockerignore\\n' >.dockerignore; printf 'FROM busybox\\nCOPY * /srv/\\n' >Dockerfile; ${listed}`,
  ],
  [
    'moby 31722',
    'an exception with a pattern in the folder',
    `${IGNORED}; printf 'dir\\n!dir*/file1\\n!dir/file2\\n' >.dockerignore; printf 'FROM busybox\\nCOPY . /srv/\\n' >Dockerfile; ${listed}`,
  ],
  [
    'moby 30018',
    'exceptions for any folder',
    `${IGNORED}; printf '*\\n!hi.txt\\n!photos/*.jpeg\\n!*/*.txt\\n' >.dockerignore; printf 'FROM busybox\\nCOPY . /srv/\\n' >Dockerfile; ${listed}`,
  ],
  [
    'moby 24475',
    'an ignored folder that is missing',
    `${IGNORED}; printf 'nowhere\\n' >.dockerignore; printf 'FROM busybox\\nCOPY . /srv/\\n' >Dockerfile; ${listed}`,
  ],
  [
    'docker/for-linux 585',
    'a Dockerfile below an exception',
    `mkdir -p docker/app; echo 'FROM busybox' >docker/app/Dockerfile; printf '*\\n!docker/*/Dockerfile\\n' >.dockerignore; docker build -q -t $D -f docker/app/Dockerfile . >/dev/null 2>&1; echo built $?`,
  ],
  [
    'moby 11394',
    'cp of a relative link',
    `docker create --name $D busybox true >/dev/null; mkdir -p t/one t/two; touch t/one/a; ln -s ../one/a t/two/a; docker cp t $D:/t; docker cp $D:/t back; ls -R back; readlink back/two/a`,
  ],
  [
    'moby 31816',
    'cp to a file in a linked folder of the client',
    `docker create --name $D busybox true >/dev/null; mkdir real; ln -s real link; docker cp $D:/bin/sh link/shell; ls real`,
  ],
  [
    'moby 11642',
    'cp of links over the edge of a volume',
    `docker run -d --name $D -v $D:/test busybox sleep 1000 >/dev/null; docker exec $D sh -c 'echo r >/rootfile; echo v >/test/volfile; ln -s /rootfile /test/to-root; ln -s /test/volfile /to-vol; ln -s rootfile /to-root'; for f in /to-root /to-vol /test/to-root; do docker cp -L $D:$f out && cat out; rm -f out; docker cp $D:$f out; readlink out; rm -f out; done; docker rm -f -v $D >/dev/null`,
  ],
  [
    'moby 7296',
    'cp of a folder with a link to a neighbour',
    `docker create --name $D busybox true >/dev/null; mkdir lib; echo so >lib/so.3; ln -s so.3 lib/so; docker cp lib $D:/lib2; docker cp $D:/lib2 out; ls -l out | wc -l; cat out/so`,
  ],
  [
    'moby 16555',
    'cp -L follows a link of the client',
    `docker create --name $D busybox true >/dev/null; echo hello >real; ln -s real link; docker cp -L link $D:/one; docker cp link $D:/two; docker cp $D:/one - | tar -xO; docker cp $D:/two - | tar -tv | grep -o 'two.*'`,
  ],
  [
    'moby 12546',
    'exec -i ends with its command',
    `docker run -d --name $D busybox sleep 1000 >/dev/null; mkfifo p; exec 3<>p; timeout 20 docker exec -i $D true <p; echo $?; docker rm -f $D >/dev/null`,
  ],
  [
    'moby 37870',
    'exec -i with an empty stdin',
    `docker run -d --name $D busybox sleep 1000 >/dev/null; for i in 1 2 3 4 5 6 7 8 9 10; do timeout 30 docker exec -i $D cat </dev/null; echo $?; done; docker rm -f $D >/dev/null`,
  ],
  [
    'moby 13052',
    'exec -i of ps ends',
    `docker run -d --name $D busybox sleep 1000 >/dev/null; mkfifo p; exec 3<>p; timeout 20 docker exec -i $D echo over <p; echo $?; docker rm -f $D >/dev/null`,
  ],
  [
    'moby 8987',
    'run -i ends with its command',
    `mkfifo p; exec 3<>p; timeout 20 docker run --rm -i busybox echo over <p; echo $?`,
  ],
  [
    'docker-py 845',
    'logs with a tail of 0',
    `docker run --name $D busybox seq 5 >/dev/null; docker logs --tail 0 $D | wc -l; docker logs --tail 2 $D; docker logs --tail all $D | wc -l`,
  ],
  [
    'docker-py 473',
    'logs of stderr keep their first byte',
    `docker run --name $D busybox sh -c 'echo database >&2; exit 1' 2>/dev/null; docker logs $D 2>&1`,
  ],
  [
    'podman 17728',
    'the state of a new container',
    `docker create --name $D busybox true >/dev/null; docker inspect -f '{{.State.Status}} {{.State.Running}} {{.State.ExitCode}}' $D`,
  ],
  [
    'podman 27288',
    'the status in a list',
    `docker run -d --name $D busybox sleep 1000 >/dev/null; docker ps --filter name=$D --format '{{.Status}}' | cut -c1-2; docker pause $D >/dev/null; docker ps --filter name=$D --format '{{.Status}}' | grep -o Paused; docker rm -f $D >/dev/null; docker ps -a --filter name=$D --format x`,
  ],
  [
    'docuum 346',
    'filters of all states',
    `for s in created restarting running removing paused exited dead nope; do docker ps -a --filter status=$s --filter name=nothing --format x >/dev/null 2>&1; echo $s $?; done`,
  ],
  [
    'testcontainers-java 2088',
    'images by the filter of 1.24',
    `docker tag busybox $D/ryuk:0.3.0; docker images --format '{{.Repository}}:{{.Tag}}' $D/ryuk:0.3.0; docker images --format '{{.Tag}}' "$D/*"; docker rmi $D/ryuk:0.3.0 | grep -c Untagged`,
  ],
  [
    'compose 4476',
    'volumes from a former container',
    `docker run --name $D -v /data busybox touch /data/one; docker run --rm --volumes-from $D busybox ls /data; docker run --rm --volumes-from $D:ro busybox touch /data/two 2>&1 | grep -o Read-only; docker rm -v $D >/dev/null`,
  ],
  [
    'moby 20660',
    'anonymous volumes follow an image’s VOLUME',
    `printf 'FROM busybox\\nRUN mkdir /v && echo kept >/v/one\\nVOLUME /v\\nRUN echo lost >/v/two\\n' >Dockerfile; docker build -q -t $D . >/dev/null; docker run --rm $D ls /v`,
  ],
  [
    'moby 783',
    'modes of copied files',
    `mkdir bin; echo x >bin/run; chmod 751 bin/run; chmod 700 bin; printf 'FROM busybox\\nCOPY bin /b\\nCOPY bin/run /run\\nRUN stat -c %a /b /b/run /run >/modes\\n' >Dockerfile; docker build -q -t $D . >/dev/null; docker run --rm $D cat /modes`,
  ],
  [
    'moby 15858',
    'COPY of several folders flattens them',
    `mkdir one two; touch one/a two/b; printf 'FROM busybox\\nCOPY one two /d/\\nRUN ls /d >/list\\n' >Dockerfile; docker build -q -t $D . >/dev/null; docker run --rm $D cat /list`,
  ],
  [
    'moby 6119',
    'COPY under USER belongs to root',
    `touch f; printf 'FROM busybox\\nUSER nobody\\nCOPY f /f\\nCMD stat -c %U /f\\n' >Dockerfile; docker build -q -t $D . >/dev/null; docker run --rm $D`,
  ],
  [
    'moby 3378',
    'ENV in WORKDIR, EXPOSE, LABEL and USER',
    `printf 'FROM busybox\\nENV d=/x p=81 u=daemon\\nWORKDIR \${d}/y\\nEXPOSE $p\\nLABEL l="\${d}-\${none:-z}"\\nUSER $u\\n' >Dockerfile; docker build -q -t $D . >/dev/null; docker inspect -f '{{.Config.WorkingDir}} {{json .Config.ExposedPorts}} {{json .Config.Labels}} {{.Config.User}}' $D`,
  ],
  [
    'moby 8223',
    'TERM and HOME of run and exec',
    `docker run --rm busybox env | grep -E '^(TERM|HOME)='; docker run -d --name $D -u nobody busybox sleep 1000 >/dev/null; docker exec $D sh -c 'echo $HOME $TERM'; docker rm -f $D >/dev/null`,
  ],
  [
    'moby 2259',
    'a bind of a missing folder creates it',
    `docker run --rm -v $PWD/made/deep:/m busybox true; test -d made/deep; echo $?`,
  ],
  [
    'moby 4361',
    'exit codes of a failed start',
    `docker run busybox nosuch >/dev/null 2>&1; echo $?; docker run busybox /etc >/dev/null 2>&1; echo $?; docker run --rm --nosuchflag busybox true >/dev/null 2>&1; echo $?; docker run --rm busybox sh -c 'kill -9 $$'; echo $?`,
  ],
  [
    'moby 5647',
    'stop of a shell that ignores SIGTERM',
    `docker run -d --name $D busybox sh -c 'trap "" TERM; while :; do sleep 1; done' >/dev/null; docker stop -t 1 $D >/dev/null; docker inspect -f '{{.State.ExitCode}} {{.State.Status}}' $D`,
  ],
  [
    'moby 10163',
    'on-failure counts its restarts',
    `docker run -d --name $D --restart on-failure:2 busybox false >/dev/null; docker wait $D >/dev/null; for i in $(seq 60); do [ "$(docker inspect -f '{{.RestartCount}} {{.State.Status}}' $D)" = '2 exited' ] && break; sleep 0.5; done; docker inspect -f '{{.RestartCount}} {{.State.Status}}' $D`,
  ],
  [
    'moby 7105',
    'rename keeps links and frees the name',
    `docker create --name $D busybox true >/dev/null; docker rename $D $D-2; docker inspect -f '{{.Name}}' $D-2 | sed s/$D/x/; docker inspect -f x $D 2>/dev/null; echo $?; docker create --name $D busybox true >/dev/null; echo $?`,
  ],
  [
    'moby 20486',
    'an alias in the default bridge is refused',
    `docker run --rm --net-alias x busybox true >/dev/null 2>&1; echo $?; docker network create $D >/dev/null; docker run --rm --net $D --net-alias x busybox nslookup x >/dev/null 2>&1; echo $?; docker network rm $D >/dev/null`,
  ],
  [
    'moby 13914',
    'search domains and options of the resolver',
    `docker run --rm --dns 9.9.9.9 --dns-search a.example --dns-opt ndots:2 busybox cat /etc/resolv.conf`,
  ],
  [
    'moby 15305',
    'labels in filters of all lists',
    `docker create --name $D --label a=b --label c busybox true >/dev/null; docker ps -a --filter label=a=b --filter label=c --format '{{.Names}}' | sed s/$D/x/; docker ps -a --filter label=a=x --format y; docker volume create --label v=1 $D >/dev/null; docker volume ls -q --filter label=v=1 | sed s/$D/x/; docker volume rm $D >/dev/null`,
  ],
  [
    'moby 17310',
    'save and load of several names',
    `docker tag busybox $D:1; docker tag busybox $D:2; docker save $D:1 $D:2 >t.tar; docker rmi $D:1 $D:2 >/dev/null; docker load <t.tar | sed s/$D/x/g | sort; docker rmi $D:1 $D:2 >/dev/null`,
  ],
  [
    'moby 8755',
    'export and import keep links and modes',
    `docker run --name $D busybox sh -c 'echo x >/f; chmod 640 /f; ln -s f /l; ln /f /h'; docker export $D | docker import - $D:i >/dev/null; docker run --rm $D:i sh -c 'stat -c "%a %h" /f; readlink /l'; docker rmi $D:i >/dev/null`,
  ],
  [
    'moby 21108',
    'commit with changes',
    `docker run --name $D busybox touch /made; docker commit -c 'CMD ["ls","/made"]' -c 'ENV A=b' $D $D:c >/dev/null; docker run --rm $D:c; docker inspect -f '{{json .Config.Cmd}} {{index .Config.Env 1}}' $D:c; docker rmi $D:c >/dev/null`,
  ],
  [
    'moby 25245',
    'top with fields of ps',
    `docker run -d --name $D busybox sleep 1000 >/dev/null; docker top $D -o pid,comm | tail -1 | grep -o sleep; docker top $D -o comm >/dev/null 2>&1; echo $?; docker rm -f $D >/dev/null`,
  ],
  [
    'moby 12667',
    'diff lists kinds of changes',
    `docker run --name $D busybox sh -c 'touch /new; rm /bin/vi; echo x >>/etc/passwd'; docker diff $D | sort`,
  ],
  [
    'moby 22503',
    'attach by two clients',
    `docker run -d --name $D busybox sh -c 'for i in 1 2 3; do sleep 1; echo $i; done' >/dev/null; docker attach --no-stdin $D >one & docker attach --no-stdin $D >two; wait; tail -1 one; tail -1 two`,
  ],
  [
    'moby 9299',
    'follow ends with its container',
    `docker run -d --name $D busybox sh -c 'echo a; sleep 2; echo b' >/dev/null; timeout 60 docker logs -f $D; echo $?`,
  ],
];
