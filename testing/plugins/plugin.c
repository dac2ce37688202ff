/*
 * A plugin of docker's protocol for tests, written from its documentation: volumes, and authorization.
 *
 * PLUGIN_MODE: `ends` at once with the code 3, `silent` never listens, anything else serves. Each volume is a folder in
 * /data, mounted below /mnt/volumes for its users, and one file in /users for each of them.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_PATH "/run/docker/plugins/test.sock"

static char request[65536];

/* The text of a field of the body; empty without it. */
static void field(const char *name, char *value, size_t size)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":\"", name);
    value[0] = 0;
    const char *at = strstr(request, key);
    if (at == NULL) return;
    at += strlen(key);
    size_t length = strcspn(at, "\"");
    if (length >= size) length = size - 1;
    memcpy(value, at, length);
    value[length] = 0;
}

static int users_of(const char *volume)
{
    int count = 0;
    DIR *folder = opendir("/users");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, volume, strlen(volume)) == 0) count++;
    if (folder != NULL) closedir(folder);
    return count;
}

static void answer_volume(const char *method, char *reply, size_t size)
{
    char name[128], user[128], data[192], view[192], mark[400];
    field("Name", name, sizeof name);
    field("ID", user, sizeof user);
    snprintf(data, sizeof data, "/data/%s", name);
    snprintf(view, sizeof view, "/mnt/volumes/%s", name);
    snprintf(mark, sizeof mark, "/users/%s-%s", name, user);
    int is_there = access(data, F_OK) == 0;
    if (strcmp(method, "Capabilities") == 0) {
        snprintf(reply, size, "{\"Capabilities\":{\"Scope\":\"local\"}}");
    } else if (strcmp(method, "Create") == 0) {
        if (mkdir(data, 0755) < 0 || mkdir(view, 0755) < 0) snprintf(reply, size, "{\"Err\":\"%s\"}", strerror(errno));
        else snprintf(reply, size, "{\"Err\":\"\"}");
    } else if (!is_there) {
        snprintf(reply, size, "{\"Err\":\"no such volume\"}");
    } else if (strcmp(method, "Get") == 0) {
        snprintf(reply, size, "{\"Volume\":{\"Name\":\"%s\",\"Mountpoint\":\"%s\",\"Status\":{\"pid\":%d,\"users\":%d}},\"Err\":\"\"}",
                 name, view, getpid(), users_of(name));
    } else if (strcmp(method, "Path") == 0) {
        snprintf(reply, size, "{\"Mountpoint\":\"%s\",\"Err\":\"\"}", view);
    } else if (strcmp(method, "Mount") == 0) {
        int failed = users_of(name) == 0 && mount(data, view, NULL, MS_BIND, NULL) < 0;
        close(open(mark, O_CREAT | O_WRONLY, 0600));
        snprintf(reply, size, "{\"Mountpoint\":\"%s\",\"Err\":\"%s\"}", view, failed ? strerror(errno) : "");
    } else if (strcmp(method, "Unmount") == 0) {
        unlink(mark);
        int failed = users_of(name) == 0 && umount2(view, MNT_DETACH) < 0;
        snprintf(reply, size, "{\"Err\":\"%s\"}", failed ? strerror(errno) : "");
    } else {
        char command[600];
        snprintf(command, sizeof command, "%s/file", data);
        unlink(command);
        int failed = rmdir(data) < 0 || rmdir(view) < 0;
        snprintf(reply, size, "{\"Err\":\"%s\"}", failed ? strerror(errno) : "");
    }
}

static void answer(const char *method, char *reply, size_t size)
{
    const char *kinds = getenv("PLUGIN_KINDS");
    if (strcmp(method, "Plugin.Activate") == 0) snprintf(reply, size, "{\"Implements\":[%s]}", kinds ? kinds : "");
    else if (strncmp(method, "VolumeDriver.", 13) == 0) answer_volume(method + 13, reply, size);
    else if (strstr(request, "forbidden") != NULL) snprintf(reply, size, "{\"Allow\":false,\"Msg\":\"not that\"}");
    else snprintf(reply, size, "{\"Allow\":true}");
}

/* The head and as much body as it announces. */
static int read_request(int client)
{
    size_t length = 0;
    for (;;) {
        ssize_t got = read(client, request + length, sizeof request - 1 - length);
        if (got <= 0) return -1;
        length += (size_t)got;
        request[length] = 0;
        const char *body = strstr(request, "\r\n\r\n"), *announced = strcasestr(request, "content-length:");
        if (body == NULL) continue;
        if (announced == NULL || length - (size_t)(body + 4 - request) >= strtoul(announced + 15, NULL, 10)) return 0;
    }
}

int main(void)
{
    const char *mode = getenv("PLUGIN_MODE");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, _exit); /* the first process of a namespace is not ended by it otherwise */
    if (mode != NULL && strcmp(mode, "ends") == 0) return 3;
    for (const char *folder[] = {"/data", "/users", "/mnt", "/mnt/volumes", NULL}, **each = folder; *each != NULL; each++)
        mkdir(*each, 0755);
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET_PATH};
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    unlink(SOCKET_PATH);
    if (mode != NULL && strcmp(mode, "silent") == 0) for (;;) pause();
    if (bind(server, (struct sockaddr *)&address, sizeof address) < 0 || listen(server, 100) < 0) return 4;
    for (;;) {
        char reply[1024], head[256], method[64] = "";
        int client = accept(server, NULL, NULL);
        if (client < 0) continue;
        if (read_request(client) == 0 && sscanf(request, "POST /%63[^ ]", method) == 1) {
            answer(method, reply, sizeof reply);
            int length = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                                  strlen(reply));
            if (write(client, head, (size_t)length) < 0 || write(client, reply, strlen(reply)) < 0) return 5;
        }
        close(client);
    }
}
