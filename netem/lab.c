/* lab - plays scenarios on real daemons behind real links and checks what is expected.
 * Exit: 0 all held, 1 something failed, 2 usage, 3 the backend is not to be had here,
 * 4 another lab runs. */
#include "lab-reproduce.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SCENARIOS_MAX 64
#define TEARDOWN_S 30 /* of a scenario, beyond its own limit */

static const char usage_text[] =
    "Usage: lab run SCENARIO...    play them, check what they expect\n"
    "       lab list               the scenarios that come with the sources\n"
    "       lab shell SCENARIO     a prompt among its nodes and links, daemons running\n"
    "       lab reproduce RECIPE... run the experiments of recipes: target and measured\n"
    "       lab matrix [FILE]      what all recipes together have to show, a claim a line\n"
    "       lab reap               remove what a killed lab has left\n\n"
    "SCENARIO is a name from the list, all, or the path of an INI file; so is RECIPE, of recipes/.\n"
    "  --backend B   auto    kernel, else uml (the default)\n"
    "                kernel  netem of this kernel; needs root\n"
    "                uml     netem of a User-Mode Linux guest; needs no root\n"
    "                loss    loss and rate by nftables and tbf, no delay; needs root\n"
    "  --json FILE   append one object a scenario\n"
    "  --markdown F  reproduce, matrix: write tables into the file\n"
    "  --keep DIR    logs and the trainers' lines into this folder, one a scenario; reproduce, matrix:\n"
    "                what runs printed; those that are there are not run again\n"
    "  --wait S      wait so long for another lab to end (0)\n"
    "Exit: 0 all held, 1 something failed, 2 usage, 3 no such backend here, 4 another lab runs\n";

struct list {
    char *path[SCENARIOS_MAX];
    int count;
};

static int usage(const char *problem, const char *what)
{
    lab_say("%s%s; lab --help shows what there is", problem, what);
    return LAB_USAGE;
}

/* ---- scenarios --------------------------------------------------------------- */

static bool add_path(struct list *l, const char *path)
{
    if (l->count == SCENARIOS_MAX)
        return false;
    l->path[l->count] = realpath(path, NULL); /* a guest has another working folder */
    if (!l->path[l->count])
        lab_say("cannot read %s: %s; lab list shows the scenarios", path, strerror(errno));
    return l->path[l->count++];
}

static bool add_scenarios(struct list *l, const char *name)
{
    char path[PATH_MAX];
    glob_t found;
    bool ok = true;
    if (strcmp(name, "all") != 0) {
        snprintf(path, sizeof path, LAB_SCENARIOS "/%s.ini", name);
        return add_path(l, strchr(name, '/') || strstr(name, ".ini") ? name : path);
    }
    if (glob(LAB_SCENARIOS "/*.ini", 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc && ok; i++)
        ok = add_path(l, found.gl_pathv[i]);
    globfree(&found);
    return ok;
}

static int list_scenarios(void)
{
    static struct list l;
    static struct scenario s;
    if (!add_scenarios(&l, "all"))
        return LAB_FAILED;
    for (int i = 0; i < l.count; i++)
        if (scenario_load(&s, l.path[i], stderr))
            printf("%-28s %s\n", s.name, s.about);
    return LAB_OK;
}

/* ---- backend and lock ------------------------------------------------------------ */

static const struct {
    const struct lab_backend *backend; /* NULL: the guest's side plays */
    const char *name;
    bool (*available)(char *why, size_t len);
} backends[] = {
    {&backend_kernel, "kernel", NULL}, {NULL, "uml", uml_available}, {&backend_loss, "loss", NULL}};

static bool available(int i, char *why, size_t len)
{
    return backends[i].backend ? backends[i].backend->available(why, len)
                               : backends[i].available(why, len);
}

/* The index of the backend; -1 after saying why there is none. */
static int choose(const char *name)
{
    char why[2][160];
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, backends[i].name) != 0)
            continue;
        if (available(i, why[0], sizeof why[0]))
            return i;
        lab_say("no backend %s here: %s", name, why[0]);
        return -1;
    }
    for (int i = 0; i < 2; i++)
        if (available(i, why[i], sizeof why[i]))
            return i;
    lab_say("no netem here; kernel: %s; uml: %s.  --backend loss does without delay", why[0],
            why[1]);
    return -1;
}

/* One lab at a time: on this kernel they share names; guests only the processor, so there
 * is one of a user's in each $TMPDIR. */
static int lock(bool guest, double wait_s)
{
    char path[128] = "/tmp/sleet-lab-kernel.lock", holder[16] = "?";
    double limit = lab_now() + wait_s;
    if (guest)
        snprintf(path, sizeof path, "%s/sleet-lab-%u.lock", uml_folder(), (unsigned)getuid());
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        lab_say("cannot open the lock %s: %s", path, strerror(errno));
        return -1;
    }
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (lab_now() >= limit) {
            ssize_t n = pread(fd, holder, sizeof holder - 1, 0);
            holder[n > 0 ? n : 0] = '\0';
            lab_say("another lab runs (process %s): wait for its end (--wait S), or end it",
                    holder);
            close(fd);
            return -1;
        }
        usleep(200000);
    }
    if (ftruncate(fd, 0) != 0 || dprintf(fd, "%d", (int)getpid()) < 0)
        lab_say("cannot write %s: %s", path, strerror(errno));
    return fd;
}

/* ---- commands ------------------------------------------------------------------------ */

static int play_here(const struct scenario *s, int count, const struct lab_backend *backend,
                     const struct lab_options *o)
{
    struct lab_tally tally = {0, 0, false};
    for (int i = 0; i < count && !tally.stopped; i++)
        lab_play(&s[i], backend, o, &tally);
    if (tally.stopped) {
        lab_say("interrupted");
        return 128 + SIGINT;
    }
    printf("lab: %d passed, %d failed\n", tally.passed, tally.failed);
    fflush(stdout);
    return tally.failed ? LAB_FAILED : LAB_OK;
}

static int play_in_guest(struct list *l, double limit_s, const struct lab_options *o, bool shell)
{
    char program[] = "lab", run[] = "run", prompt[] = "shell";
    char *argv[SCENARIOS_MAX + 2] = {program, shell ? prompt : run};
    for (int i = 0; i < l->count; i++)
        argv[i + 2] = l->path[i];
    return uml_run(l->count + 2, argv, o, limit_s, shell);
}

static int run(struct list *l, const struct lab_options *o, bool shell)
{
    static struct scenario s[SCENARIOS_MAX];
    double limit_s = 0;
    for (int i = 0; i < l->count; i++) {
        if (!scenario_load(&s[i], l->path[i], stderr))
            return LAB_USAGE;
        limit_s += s[i].limit_s + TEARDOWN_S;
    }
    if (o->guest)
        return shell ? lab_shell(&s[0], &backend_guest) : play_here(s, l->count, &backend_guest, o);
    int chosen = choose(o->backend);
    if (chosen < 0)
        return LAB_NO_BACKEND;
    if (lock(!backends[chosen].backend, o->wait_s) < 0)
        return LAB_BUSY;
    printf("lab: backend %s\n", backends[chosen].name);
    fflush(stdout);
    if (!backends[chosen].backend)
        return play_in_guest(l, limit_s, o, shell);
    return shell ? lab_shell(&s[0], backends[chosen].backend)
                 : play_here(s, l->count, backends[chosen].backend, o);
}

/* What is in use stays, and is said to be. */
static int reap(const struct lab_options *o)
{
    int status = LAB_OK;
    const char *folders[] = {"find",  "/run", "-maxdepth", "1",  "-name", LAB_PREFIX "-*",
                             "-exec", "rm",   "-rf",       "{}", "+",     NULL};
    if (geteuid() == 0 && lock(false, o->wait_s) >= 0) {
        net_down();
        lab_must(folders, NULL);
    } else if (geteuid() == 0) {
        status = LAB_BUSY;
    }
    if (lock(true, o->wait_s) >= 0)
        uml_reap();
    else
        status = LAB_BUSY;
    return status;
}

static int command(const char *name, int count, char **names, const struct lab_options *o)
{
    static struct list l;
    bool shell = strcmp(name, "shell") == 0, reproduces = strcmp(name, "reproduce") == 0, matrix = strcmp(name, "matrix") == 0;
    if (!reproduces && !matrix && o->markdown)
        return usage("--markdown is for reproduce and matrix", "");
    if ((reproduces || matrix) && (o->json || o->wait_s > 0 || strcmp(o->backend, "auto") != 0))
        return usage("--backend, --json and --wait are for scenarios, of which this plays none: ", name);
    if (strcmp(name, "list") == 0 && count == 0)
        return list_scenarios();
    if (strcmp(name, "reap") == 0 && count == 0)
        return reap(o);
    if (reproduces && count > 0)
        return lab_reproduce(count, names, o);
    if (matrix && count <= 1)
        return lab_matrix(count ? names[0] : NULL, o);
    if (!shell && strcmp(name, "run") != 0 && !reproduces)
        return usage("unknown command or too many arguments: ", name);
    if (count == 0 || (shell && count > 1))
        return usage(shell ? "shell takes one scenario" : "run and reproduce need names", "");
    for (int i = 0; i < count; i++)
        if (!add_scenarios(&l, names[i]))
            return LAB_USAGE;
    return run(&l, o, shell);
}

static bool number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0 && *out <= 86400;
}

static int lab_main(int argc, char **argv)
{
    static const struct option known[] = {
        {"backend", required_argument, NULL, 'b'}, {"json", required_argument, NULL, 'j'},
        {"keep", required_argument, NULL, 'k'},    {"wait", required_argument, NULL, 'w'},
        {"markdown", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    struct lab_options o = {.backend = "auto", .guest = getenv("SLEET_LAB_JOB") && getppid() == 1};
    for (int c; (c = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        if (c == 'h')
            return fputs(usage_text, stdout) < 0 ? LAB_FAILED : LAB_OK;
        if (c == 'b' && (strcmp(optarg, "auto") == 0 || strcmp(optarg, "kernel") == 0 ||
                         strcmp(optarg, "uml") == 0 || strcmp(optarg, "loss") == 0))
            o.backend = optarg;
        else if (c == 'j')
            o.json = optarg;
        else if (c == 'm')
            o.markdown = optarg;
        else if (c == 'k' && access(optarg, W_OK) == 0)
            o.keep = optarg;
        else if (c != 'w' || !number(optarg, &o.wait_s))
            return c == '?' ? LAB_USAGE : usage("wrong value of an option: ", optarg);
    }
    if (optind >= argc)
        return usage("a command is missing", "");
    return command(argv[optind], argc - optind - 1, argv + optind + 1, &o);
}

int main(int argc, char **argv)
{
    const char *job = getenv("SLEET_LAB_JOB"), *path = getenv("PATH");
    char full[4096];
    lab_exec_init();
    if (getpid() == 1 && job)
        uml_init(job, lab_main);
    snprintf(full, sizeof full, "%s:/usr/sbin:/sbin", path && *path ? path : "/usr/bin:/bin");
    setenv("PATH", full, 1); /* tc and ip are there, also for an ordinary user */
    return lab_main(argc, argv);
}
