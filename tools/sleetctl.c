/* sleetctl.c - the command line, and the client side of the control socket. */
#include "sleetctl.h"
#include "client/protocol.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX (4u << 20) /* bytes of an answer line */
#define ANSWER_LIMIT_MS 5000

static const char usage_text[] =
    "usage: sleetctl [-s SOCKET] [--json] [status|peers|rounds|explain [ROUND]|state|"
    "                config|leave|resume|shutdown]\n"
    "       sleetctl [-s SOCKET] [--json] set [SET] strategy=NAME[:A[,B]]\n"
    "       sleetctl [--json] run -n N [--loss P] [--seed S] [--rate MBIT]\n"
    "                [--freeze NODE:WHEN:FOR_S] [--keep DIR]\n"
    "                [--security sealed|none] -- CMD ARGS...\n"
    "       sleetctl [--json] keygen [--show] [--force] [--node [FILE]] [--job [FILE]]\n"
    "                [--operator [FILE]]\n"
    "       sleetctl [-s SOCKET] [--json] evict NODEID [--operator FILE]\n"
    "       sleetctl [-s SOCKET] [--json] rekey [--operator FILE]\n"
    "\n"
    "Without -s the socket is $SLEET_CONTROL, or the daemon's default path.\n"
    "explain tells which elements of a round had which contributors, and why not all.\n"
    "state tells who publishes which version of the tensors, and whose blobs are held.\n"
    "resume lets a parked or paused job go on among the nodes that can be heard now.\n"
    "set gives a set of tensors another strategy while the job runs: from a round a little\n"
    "ahead on all nodes average by it.  SET may be left out where the node has one.\n"
    "config prints the daemon's options as a file that sleetd takes.\n"
    "run: N daemons and N copies of CMD on this machine, with keys of their own.  P is the fraction of\n"
    "datagrams that the daemons drop (emulated); MBIT the rate of each node;\n"
    "NODE counts from 0 and WHEN is seconds after the start, or /TEXT/: when the\n"
    "node prints a line with TEXT in it.  DIR keeps the daemons' logs.  {i} and {n}\n"
    "in ARGS become the node's number and N, as in SLEET_NODE, SLEET_RANK and SLEET_NODES.\n"
    "With --json one line of figures a node follows at the end.\n"
    "keygen makes key files that only you can read, and prints their public halves: the\n"
    "node's own (the default), the job's (made once, then copied to every node) and an\n"
    "operator's (for evict and rekey; keep it off the nodes).  --show prints those of\n"
    "files that exist.\n"
    "evict puts a node out of the job, rekey gives all nodes but the evicted a new job key.\n";

static int usage(const char *what)
{
    if (what)
        fprintf(stderr, "sleetctl: %s\n", what);
    fputs(usage_text, stderr);
    return CTL_USAGE;
}

/* ---- control socket ----------------------------------------------------- */

static int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int connect_to(const char *path, char *why, size_t why_len)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd;
    if (strlen(path) >= sizeof a.sun_path) {
        snprintf(why, why_len, "the socket path %s is too long", path);
        return -1;
    }
    memcpy(a.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    snprintf(why, why_len, "no sleetd answers at %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* More bytes of the answer to the end of `*text`; false with `why`. */
static bool read_more(int fd, int64_t until, char **text, size_t *len, char *why, size_t why_len)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t left = until - clock_ms();
    char *more = realloc(*text, *len + 65536);
    ssize_t got;
    if (!more || *len > ANSWER_MAX) {
        snprintf(why, why_len, "the answer is too long");
        return false;
    }
    *text = more;
    (*text)[*len] = '\0';
    if (left <= 0 || poll(&p, 1, (int)left) == 0) {
        snprintf(why, why_len, "sleetd did not answer in time");
        return false;
    }
    got = read(fd, *text + *len, 65535);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (got <= 0) {
        snprintf(why, why_len, "sleetd closed the connection");
        return false;
    }
    *len += (size_t)got;
    (*text)[*len] = '\0';
    return true;
}

/* The reply: the first line that is neither the greeting nor news (1xx).  In
 * memory of the caller's, NULL with `why`. */
static char *read_reply(int fd, int64_t until, char *why, size_t why_len)
{
    char *text = NULL;
    size_t len = 0;
    while (read_more(fd, until, &text, &len, why, why_len)) {
        char *end;
        while (text && (end = strchr(text, '\n')) != NULL) {
            *end = '\0';
            if (text[0] != '1' && strncmp(text, "220", 3) != 0)
                return text;
            len -= (size_t)(end + 1 - text);
            memmove(text, end + 1, len + 1);
        }
    }
    free(text);
    return NULL;
}

cJSON *ctl_request(const char *socket_path, const char *command, int limit_ms, char *why,
                   size_t why_len)
{
    int64_t until = clock_ms() + limit_ms;
    int fd = connect_to(socket_path, why, why_len);
    char text[512], *line = NULL;
    cJSON *answer = NULL;
    int len = snprintf(text, sizeof text, "%s\n", command);
    if (fd < 0)
        return NULL;
    if (send(fd, text, (size_t)len, MSG_NOSIGNAL) == len)
        line = read_reply(fd, until, why, why_len);
    else
        snprintf(why, why_len, "cannot send to sleetd: %s", strerror(errno));
    if (line && line[0] == '2') {
        answer = line[1] == '1' ? cJSON_Parse(line + strcspn(line, "{")) : cJSON_CreateObject();
        if (!answer)
            snprintf(why, why_len, "the answer to \"%s\" is not JSON", command);
    } else if (line) {
        snprintf(why, why_len, "sleetd answered: %s", line);
    }
    free(line);
    close(fd);
    return answer;
}

/* ---- surroundings of a run ----------------------------------------------- */

bool run_pick_ports(uint16_t *port, int n)
{
    int fds[RUN_NODES_MAX], bound = 0;
    for (; bound < n; bound++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof a;
        fds[bound] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fds[bound] < 0)
            break;
        if (bind(fds[bound], (struct sockaddr *)&a, len) != 0 ||
            getsockname(fds[bound], (struct sockaddr *)&a, &len) != 0) {
            close(fds[bound]);
            break;
        }
        port[bound] = ntohs(a.sin_port);
    }
    if (bound < n)
        fprintf(stderr, "sleetctl: no free UDP port on 127.0.0.1: %s\n", strerror(errno));
    for (int i = 0; i < bound; i++)
        close(fds[i]);
    return bound == n;
}

bool run_make_dir(char *dir, size_t size, const char *keep)
{
    const char *tmp = getenv("TMPDIR");
    int len;
    if (keep) {
        len = snprintf(dir, size, "%s", keep);
        if (len < (int)size && (mkdir(dir, 0700) == 0 || errno == EEXIST))
            return true;
    } else {
        len = snprintf(dir, size, "%s/sleet-run-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        if (len < (int)size && mkdtemp(dir))
            return true;
    }
    fprintf(stderr, "sleetctl: cannot make the directory %s: %s\n", dir,
            len >= (int)size ? "path too long for a socket" : strerror(errno));
    dir[0] = '\0';
    return false;
}

void run_remove_dir(const char *dir)
{
    DIR *d = !dir[0] ? NULL : opendir(dir);
    const struct dirent *e;
    while (d && (e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(dirfd(d), e->d_name, 0);
    if (d) {
        closedir(d);
        rmdir(dir);
    }
}

bool run_find_programs(char *daemon, size_t size)
{
    char self[400], path[4096];
    const char *old = getenv("PATH");
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;
    self[len > 0 ? len : 0] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = '\0';
    slash = strrchr(self, '/');
    if (slash && strcmp(slash, "/.libs") == 0) /* run from a libtool build tree */
        *slash = '\0';
    snprintf(path, sizeof path, "%s:%s", self, old ? old : "/usr/local/bin:/usr/bin:/bin");
    setenv("PATH", path, 1);
    snprintf(daemon, size, "%s/sleetd", self);
    if (access(daemon, X_OK) != 0)
        snprintf(daemon, size, "sleetd"); /* by PATH */
    return true;
}

char *run_fill_in(const char *word, int i, int n)
{
    char *out = malloc(strlen(word) * 2 + 1); /* three characters become at most two */
    size_t len = 0;
    while (out && *word) {
        bool is_i = strncmp(word, "{i}", 3) == 0, is_n = strncmp(word, "{n}", 3) == 0;
        if (is_i || is_n) {
            len += (size_t)sprintf(out + len, "%d", is_i ? i : n);
            word += 3;
        } else {
            out[len++] = *word++;
        }
    }
    if (out)
        out[len] = '\0';
    return out;
}

static bool number_in(const char *text, double least, double most)
{
    char *end;
    double v = strtod(text, &end);
    return end != text && *end == '\0' && v >= least && v <= most;
}

/* NODE:AT_S:FOR_S or NODE:/TEXT/:FOR_S. */
static bool parse_freeze(const char *word, run_freeze *f)
{
    char *end;
    long node = strtol(word, &end, 10);
    const char *last = strrchr(word, ':'), *at = end + 1;
    double for_s = last ? strtod(last + 1, NULL) : 0;
    if (end == word || *end != ':' || last == end || node < 0 || node >= RUN_NODES_MAX ||
        !(for_s > 0 && for_s < 86400) || !number_in(last + 1, 0, 86400))
        return false;
    *f = (run_freeze){.node = (int)node, .for_ms = (int64_t)(for_s * 1e3)};
    if (*at == '/') {
        size_t len = (size_t)(last - at);
        if (len < 3 || len - 2 >= sizeof f->text || at[len - 1] != '/')
            return false;
        memcpy(f->text, at + 1, len - 2);
        return true;
    }
    f->at_ms = (int64_t)(strtod(at, &end) * 1e3);
    return end == last && f->at_ms >= 0;
}

int run_parse(run_options *out, int argc, char **argv)
{
    static const struct option known[] = {
        {"loss", required_argument, NULL, 'l'},   {"seed", required_argument, NULL, 's'},
        {"rate", required_argument, NULL, 'r'},   {"freeze", required_argument, NULL, 'f'},
        {"keep", required_argument, NULL, 'k'},   {"json", no_argument, NULL, 'j'},
        {"security", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    const char *security = getenv("SLEET_JOB_SECURITY");
    int o;
    optind = 0;
    while ((o = getopt_long(argc, argv, "+n:h", known, NULL)) != -1) {
        if (o == 'n' && number_in(optarg, 1, RUN_NODES_MAX))
            out->n = atoi(optarg);
        else if (o == 'l' && number_in(optarg, 0, 1))
            out->loss = optarg;
        else if (o == 's' && number_in(optarg, 0, 1e18))
            out->seed = optarg;
        else if (o == 'r' && number_in(optarg, 0.001, 1e6))
            out->rate_mbit = optarg;
        else if (o == 'k')
            out->keep = optarg;
        else if (o == 'S')
            security = optarg;
        else if (o == 'j')
            out->json = true;
        else if (o == 'f' && out->freezes < RUN_FREEZES_MAX &&
                 parse_freeze(optarg, &out->freeze[out->freezes]))
            out->freezes++;
        else
            return usage(o == 'h' || o == '?' ? NULL : "an option of run has a bad value");
    }
    out->command = argv + optind;
    out->sealed = !security || strcmp(security, "none") != 0;
    if (security && out->sealed && strcmp(security, "sealed") != 0)
        return usage("--security of run is sealed or none");
    for (int k = 0; k < out->freezes; k++)
        if (out->freeze[k].node >= out->n)
            return usage("--freeze names a node that is not there");
    return out->n && optind < argc ? CTL_OK : usage("run needs -n N (at most 64) and a command");
}

/* ---- main ---------------------------------------------------------------- */

static const struct command {
    const char *name;
    void (*show)(const cJSON *); /* NULL: nothing to show */
    bool number;                 /* takes one */
} commands[] = {
    {"status", show_status, false}, {"peers", show_peers, false},   {"rounds", show_rounds, false},
    {"explain", show_explain, true}, {"state", show_state, false}, {"config", show_config, false}, {"leave", NULL, false},
    {"resume", NULL, false}, {"shutdown", NULL, false}};

int ctl_ask(const char *socket_path, const char *line, void (*show)(const cJSON *), bool json)
{
    char why[512];
    cJSON *answer = ctl_request(socket_path, line, ANSWER_LIMIT_MS, why, sizeof why);
    if (!answer) {
        fprintf(stderr, "sleetctl: %s\n", why);
        return CTL_FAILED;
    }
    if (json) {
        char *text = cJSON_PrintUnformatted(answer);
        puts(text ? text : "{}");
        cJSON_free(text);
    } else if (show) {
        show(answer);
    }
    cJSON_Delete(answer);
    return fflush(stdout) == 0 ? CTL_OK : CTL_FAILED;
}

static int ask(const char *socket_path, const struct command *command, const char *word, bool json)
{
    char line[64];
    snprintf(line, sizeof line, "%s%s%s", command->name, word ? " " : "", word ? word : "");
    return ctl_ask(socket_path, line, command->show, json);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"socket", required_argument, NULL, 's'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *socket_path = getenv("SLEET_CONTROL"), *command = "status";
    char fallback[108];
    bool json = false;
    int o;
    while ((o = getopt_long(argc, argv, "+s:h", known, NULL)) != -1) {
        if (o == 's')
            socket_path = optarg;
        else if (o == 'j')
            json = true;
        else if (o == 'h')
            return fputs(usage_text, stdout) < 0 ? CTL_FAILED : CTL_OK;
        else
            return usage(NULL);
    }
    if (optind < argc)
        command = argv[optind];
    if (strcmp(command, "run") == 0) {
        static run_options options;
        options.json = json;
        o = run_parse(&options, argc - optind, argv + optind);
        return o == CTL_OK ? run_nodes(&options) : o;
    }
    if (strcmp(command, "keygen") == 0)
        return keygen_main(argc - optind, argv + optind, json);
    if (!socket_path || !*socket_path) {
        control_default_path(fallback, sizeof fallback, getuid());
        socket_path = fallback;
    }
    if (strcmp(command, "evict") == 0 || strcmp(command, "rekey") == 0)
        return order_main(socket_path, argc - optind, argv + optind, json);
    if (strcmp(command, "set") == 0)
        return set_main(socket_path, argc - optind, argv + optind, json);
    const char *word = NULL;
    for (int k = optind + 1; k < argc; k++) /* options after the command */
        if (strcmp(argv[k], "--json") == 0)
            json = true;
        else if (!word)
            word = argv[k];
        else
            return usage("too many words");
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
        if (strcmp(command, commands[k].name) == 0) {
            if (word && (!commands[k].number || !*word || word[strspn(word, "0123456789")]))
                return usage(commands[k].number ? "ROUND is a whole number" : "too many words");
            return ask(socket_path, &commands[k], word, json);
        }
    return usage("unknown command");
}
