/*
 * A plugin of docker's protocol for tests, written from its documentation: volumes, authorization, and networks with
 * addresses.
 *
 * PLUGIN_MODE: `ends` at once with the code 3, `silent` never listens, anything else serves. Each volume is a folder in
 * /data, mounted below /mnt/volumes for its users, and one file in /users for each of them. Each network is a bridge of
 * the machine, each endpoint a pair of links; addresses are 10.78.0.2 and the following, never given again.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
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

struct link_request {
    struct nlmsghdr head;
    struct ifinfomsg link;
    char attributes[512];
};

static struct rtattr *attribute(struct link_request *ask, int type, const void *value, size_t size)
{
    struct rtattr *next = (struct rtattr *)((char *)ask + NLMSG_ALIGN(ask->head.nlmsg_len));
    next->rta_type = (unsigned short)type;
    next->rta_len = (unsigned short)RTA_LENGTH(size);
    if (size > 0) memcpy(RTA_DATA(next), value, size);
    ask->head.nlmsg_len = (unsigned)(NLMSG_ALIGN(ask->head.nlmsg_len) + RTA_ALIGN(next->rta_len));
    return next;
}

static void closed(struct link_request *ask, struct rtattr *outer)
{
    outer->rta_len = (unsigned short)((char *)ask + ask->head.nlmsg_len - (char *)outer);
}

/* Asks the kernel; 0, or its error. */
static int ask_kernel(struct link_request *ask)
{
    char got[1024];
    int route = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    ask->head.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    int failed = send(route, ask, ask->head.nlmsg_len, 0) < 0 || recv(route, got, sizeof got, 0) < 0;
    close(route);
    return failed ? errno : -((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)got))->error;
}

static struct link_request change(int type, const char *name)
{
    struct link_request ask = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof ask.link), .nlmsg_type = (unsigned short)type}};
    ask.link.ifi_index = (int)if_nametoindex(name);
    return ask;
}

/* A bridge, or with `peer` a pair of links. */
static int make_link(const char *name, const char *kind, const char *peer)
{
    struct link_request ask = change(RTM_NEWLINK, "");
    struct ifinfomsg none = {0};
    ask.head.nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
    attribute(&ask, IFLA_IFNAME, name, strlen(name) + 1);
    struct rtattr *info = attribute(&ask, IFLA_LINKINFO, NULL, 0);
    attribute(&ask, IFLA_INFO_KIND, kind, strlen(kind));
    if (peer != NULL) {
        struct rtattr *data = attribute(&ask, IFLA_INFO_DATA, NULL, 0);
        struct rtattr *other = attribute(&ask, VETH_INFO_PEER, &none, sizeof none);
        attribute(&ask, IFLA_IFNAME, peer, strlen(peer) + 1);
        closed(&ask, other);
        closed(&ask, data);
    }
    closed(&ask, info);
    return ask_kernel(&ask);
}

static int bring_up(const char *name, const char *bridge)
{
    struct link_request ask = change(RTM_NEWLINK, name);
    unsigned master = bridge == NULL ? 0 : if_nametoindex(bridge);
    ask.link.ifi_flags = ask.link.ifi_change = IFF_UP;
    if (bridge != NULL) attribute(&ask, IFLA_MASTER, &master, sizeof master);
    return ask_kernel(&ask);
}

static int drop_link(const char *name)
{
    struct link_request ask = change(RTM_DELLINK, name);
    return ask.link.ifi_index == 0 ? 0 : ask_kernel(&ask); /* a pair goes with its container */
}

static void answer_network(const char *method, char *reply, size_t size)
{
    char network[128], endpoint[128], bridge[IFNAMSIZ], outer[IFNAMSIZ], inner[IFNAMSIZ];
    int failed = 0;
    field("NetworkID", network, sizeof network);
    field("EndpointID", endpoint, sizeof endpoint);
    snprintf(bridge, sizeof bridge, "mb%.10s", network);
    snprintf(outer, sizeof outer, "mo%.10s", endpoint);
    snprintf(inner, sizeof inner, "mi%.10s", endpoint);
    if (strcmp(method, "GetCapabilities") == 0) {
        snprintf(reply, size, "{\"Scope\":\"local\"}");
        return;
    }
    if (strcmp(method, "Join") == 0) {
        snprintf(reply, size, "{\"InterfaceName\":{\"SrcName\":\"%s\",\"DstPrefix\":\"eth\"}}", inner);
        return;
    }
    if (strcmp(method, "CreateNetwork") == 0 && (failed = make_link(bridge, "bridge", NULL)) == 0) {
        failed = bring_up(bridge, NULL);
    } else if (strcmp(method, "CreateEndpoint") == 0 && (failed = make_link(outer, "veth", inner)) == 0) {
        failed = bring_up(outer, bridge);
    } else if (strcmp(method, "DeleteEndpoint") == 0) {
        failed = drop_link(outer);
    } else if (strcmp(method, "DeleteNetwork") == 0) {
        failed = drop_link(bridge);
    }
    snprintf(reply, size, "{\"Err\":\"%s\"}", failed ? strerror(failed) : "");
}

/* The number of the last address is kept in a file: the plugin may be ended and started again. */
static int next_address(void)
{
    int number = 1;
    FILE *file = fopen("/last", "r+");
    if (file == NULL) file = fopen("/last", "w+");
    if (file == NULL || (fscanf(file, "%d", &number) != 1 && fseek(file, 0, SEEK_SET) != 0)) return 0;
    rewind(file);
    fprintf(file, "%d", number + 1);
    fclose(file);
    return number + 1;
}

static void answer_addresses(const char *method, char *reply, size_t size)
{
    char wanted[64];
    field("Address", wanted, sizeof wanted);
    if (strcmp(method, "GetDefaultAddressSpaces") == 0)
        snprintf(reply, size, "{\"LocalDefaultAddressSpace\":\"here\",\"GlobalDefaultAddressSpace\":\"all\"}");
    else if (strcmp(method, "RequestPool") == 0)
        snprintf(reply, size, "{\"PoolID\":\"one\",\"Pool\":\"10.78.0.0/24\"}");
    else if (strcmp(method, "RequestAddress") == 0 && wanted[0] != 0)
        snprintf(reply, size, "{\"Address\":\"%s/24\"}", wanted);
    else if (strcmp(method, "RequestAddress") == 0)
        snprintf(reply, size, "{\"Address\":\"10.78.0.%d/24\"}", next_address());
    else snprintf(reply, size, "{}");
}

static void answer(const char *method, char *reply, size_t size)
{
    const char *kinds = getenv("PLUGIN_KINDS");
    if (strcmp(method, "Plugin.Activate") == 0) snprintf(reply, size, "{\"Implements\":[%s]}", kinds ? kinds : "");
    else if (strncmp(method, "VolumeDriver.", 13) == 0) answer_volume(method + 13, reply, size);
    else if (strncmp(method, "NetworkDriver.", 14) == 0) answer_network(method + 14, reply, size);
    else if (strncmp(method, "IpamDriver.", 11) == 0) answer_addresses(method + 11, reply, size);
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
