/* lab-uml.c - a guest with netem on a host without it: User-Mode Linux on the host's
 * own files runs this same program.  No root is needed.
 *
 * Arguments, output and exit status pass through files in a folder of the run's own:
 * args, out, rc, console (the guest kernel's words) and json. */
#include "lab.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UML "linux.uml"
#define UML_MODULES "/usr/lib/uml/modules"
#define MEMORY "mem=1G"
#define MEMORY_BYTES (1.0 * (1 << 30))
#define ARGS_MAX 128
#define TMP_FOLDER_MAX 40 /* bytes; the guest puts a socket below it */
#define BOOT_S 60         /* for boot and halt */

bool uml_available(char *why, size_t len)
{
    snprintf(why, len, "User-Mode Linux is missing (packages user-mode-linux and kmod)");
    return lab_find(UML) && lab_find("modprobe") && access(UML_MODULES, R_OK) == 0;
}

static void job_path(const char *job, const char *name, char *out, size_t len)
{
    snprintf(out, len, "%s/%s", job, name);
}

static int open_in(const char *job, const char *name, int flags)
{
    char path[256];
    job_path(job, name, path, sizeof path);
    return open(path, flags | O_CLOEXEC, 0600);
}

/* A file of the job as text, NULL if there is none; *len may be NULL. */
static char *read_in(const char *job, const char *name, size_t *len)
{
    int fd = open_in(job, name, O_RDONLY);
    struct stat st;
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && (text = calloc(1, (size_t)st.st_size + 1))) {
        ssize_t got = read(fd, text, (size_t)st.st_size);
        if (len)
            *len = got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

static void remove_job(const char *job)
{
    const char *argv[] = {"rm", "-rf", job, NULL};
    lab_exec(argv, NULL, NULL);
}

static void job_prefix(char out[64])
{
    snprintf(out, 64, "sleet-lab-%u-", (unsigned)getuid());
}

/* ---- the host's side ---------------------------------------------------------- */

static bool write_args(const char *job, int argc, char **argv)
{
    int fd = open_in(job, "args", O_WRONLY | O_CREAT);
    bool ok = fd >= 0;
    for (int i = 0; i < argc && ok; i++)
        ok = write(fd, argv[i], strlen(argv[i]) + 1) == (ssize_t)strlen(argv[i]) + 1;
    if (fd >= 0)
        close(fd);
    return ok;
}

const char *uml_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    return tmp && *tmp == '/' && strlen(tmp) <= TMP_FOLDER_MAX ? tmp : "/tmp";
}

/* For the file that is the guest's memory: slow on a disk, deadly where there is no room. */
static const char *memory_folder(void)
{
    struct statvfs v;
    bool fits = statvfs("/dev/shm", &v) == 0 && access("/dev/shm", W_OK) == 0 &&
                (double)v.f_bavail * (double)v.f_frsize >= MEMORY_BYTES;
    return fits ? "/dev/shm" : uml_folder();
}

static pid_t boot(const char *job, bool shell)
{
    char self[512], init[600], dir[160], env[160], console[200];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *argv[] = {UML,
                          MEMORY,
                          "rootfstype=hostfs",
                          "rootflags=/",
                          "rw",
                          init,
                          "con=null",
                          shell ? "con0=fd:0,fd:1" : "con0=null,fd:2",
                          "quiet",
                          dir,
                          "umid=u",
                          env,
                          NULL};
    const char *env_words[] = {"HOME", job, "TMPDIR", memory_folder(), NULL};
    if (n <= 0)
        return -1;
    self[n] = '\0';
    snprintf(init, sizeof init, "init=%s", self);
    snprintf(dir, sizeof dir, "uml_dir=%s/", job);
    snprintf(env, sizeof env, "SLEET_LAB_JOB=%s", job);
    job_path(job, "console", console, sizeof console);
    if (shell)
        return lab_attach(argv, env_words);
    int out = open(console, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    pid_t pid = lab_spawn(argv, env_words, -1, out);
    close(out);
    return pid;
}

/* What the guest has printed since the last call. */
static void pass_output(int fd)
{
    char buf[4096];
    for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0;)
        fwrite(buf, 1, (size_t)n, stdout);
    fflush(stdout);
}

/* Until the guest has halted; false when it was ended instead. */
static bool follow(pid_t pid, const char *job, double limit_s)
{
    const struct timespec look = {0, 100000000};
    double limit = lab_now() + limit_s + BOOT_S;
    int out = open_in(job, "out", O_RDONLY | O_CREAT);
    bool ended = false, stop = false;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    while (!ended && !stop) {
        stop = sigtimedwait(&set, NULL, &look) > 0 || lab_now() > limit;
        ended = waitpid(pid, NULL, WNOHANG) == pid;
        pass_output(out);
    }
    if (!ended) {
        lab_say(lab_now() > limit ? "the guest did not halt in time" : "interrupted");
        kill(-pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    close(out);
    return ended;
}

static int result(const char *job)
{
    char *rc = read_in(job, "rc", NULL);
    int code = rc && *rc ? atoi(rc) : -1;
    free(rc);
    if (code < 0) {
        char *said = read_in(job, "console", NULL);
        lab_say("the guest ended without a result; its kernel said:\n%s", said ? said : "nothing");
        free(said);
        return LAB_FAILED;
    }
    return code;
}

static void copy_json(const char *job, const char *to)
{
    size_t len = 0;
    char *text = read_in(job, "json", &len);
    FILE *f = text ? fopen(to, "ae") : NULL;
    if (text && (!f || fwrite(text, 1, len, f) != len))
        lab_say("cannot write %s: %s", to, strerror(errno));
    if (f)
        fclose(f);
    free(text);
}

int uml_run(int argc, char **argv, const struct lab_options *o, double limit_s, bool shell)
{
    char prefix[64], job[128], json_path[160], *keep = NULL, *words[ARGS_MAX];
    char json_option[] = "--json", keep_option[] = "--keep";
    int code = LAB_FAILED, n = 0;
    job_prefix(prefix);
    snprintf(job, sizeof job, "%.40s/%sXXXXXX", uml_folder(), prefix);
    if (!mkdtemp(job)) {
        lab_say("cannot make a folder like %s: %s", job, strerror(errno));
        return LAB_FAILED;
    }
    job_path(job, "json", json_path, sizeof json_path);
    for (; n < argc && n < ARGS_MAX - 5; n++)
        words[n] = argv[n];
    if (o->json) {
        words[n++] = json_option;
        words[n++] = json_path;
    }
    if (o->keep && (keep = realpath(o->keep, NULL))) {
        words[n++] = keep_option;
        words[n++] = keep;
    }
    pid_t pid = write_args(job, n, words) ? boot(job, shell) : -1;
    if (shell && pid >= 0)
        code = result(job);
    else if (pid > 0 && follow(pid, job, limit_s))
        code = result(job);
    if (o->json)
        copy_json(job, o->json);
    free(keep);
    remove_job(job);
    return code;
}

/* Processes of a guest whose lab is gone: their command line names the job. */
static void kill_guest(const char *job)
{
    DIR *proc = opendir("/proc");
    for (struct dirent *e; proc && (e = readdir(proc));) {
        char path[300], words[4096];
        long number = strtol(e->d_name, NULL, 10);
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        int fd = number > 1 && number != getpid() ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t len = fd >= 0 ? read(fd, words, sizeof words) : 0;
        if (fd >= 0)
            close(fd);
        if (len > 0 && strncmp(words, UML, strlen(UML)) == 0 &&
            memmem(words, (size_t)len, job, strlen(job)))
            kill((pid_t)number, SIGKILL);
    }
    if (proc)
        closedir(proc);
}

void uml_reap(void)
{
    char prefix[64], job[320];
    const char *tmp = uml_folder();
    job_prefix(prefix);
    DIR *dir = opendir(tmp);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(job, sizeof job, "%.40s/%s", tmp, e->d_name);
        kill_guest(job);
        remove_job(job);
        printf("removed %s\n", job);
    }
    if (dir)
        closedir(dir);
}

/* ---- the guest's side ------------------------------------------------------------- */

static void make_folders(const char *path)
{
    const char *argv[] = {"mkdir", "-p", path, NULL};
    lab_exec(argv, NULL, NULL);
}

static void mount_all(void)
{
    static const struct {
        const char *type, *on;
    } mounts[] = {{"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/run"}};
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++)
        if (mount(mounts[i].type, mounts[i].on, mounts[i].type, 0, NULL) != 0 && errno != EBUSY)
            lab_say("cannot mount %s: %s", mounts[i].on, strerror(errno));
}

bool uml_module(const char *name)
{
    const char *argv[] = {"modprobe", "-d", "/run/modules", name, NULL};
    return lab_must(argv, NULL);
}

/* The guest's modules lie where modprobe does not look by itself. */
static void load_modules(void)
{
    static const char *const modules[] = {"veth", "bridge", "sch_netem"};
    struct utsname u;
    char from[160], to[160];
    uname(&u);
    make_folders("/run/modules/lib/modules");
    snprintf(from, sizeof from, UML_MODULES "/%s", u.release);
    snprintf(to, sizeof to, "/run/modules/lib/modules/%s", u.release);
    if (symlink(from, to) != 0)
        lab_say("cannot link %s: %s", to, strerror(errno));
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        uml_module(modules[i]);
}

static void redirect(const char *job)
{
    int out = open_in(job, "out", O_WRONLY | O_CREAT | O_APPEND);
    if (out >= 0) {
        dup2(out, 1);
        dup2(out, 2);
    }
}

static void take_terminal(void)
{
    int tty;
    setsid();
    tty = open("/dev/tty0", O_RDWR);
    if (tty < 0)
        return;
    ioctl(tty, TIOCSCTTY, 0);
    for (int i = 0; i < 3; i++)
        dup2(tty, i);
}

static int run_program(const char *job, int (*program)(int argc, char **argv))
{
    char *argv[ARGS_MAX], *args;
    size_t len = 0;
    int argc = 0;
    args = read_in(job, "args", &len);
    for (char *p = args; p && p < args + len && argc < ARGS_MAX - 1; p += strlen(p) + 1)
        argv[argc++] = p;
    argv[argc] = NULL;
    if (argc > 1 && strcmp(argv[1], "shell") == 0)
        take_terminal();
    return program(argc, argv);
}

void uml_init(const char *job, int (*program)(int argc, char **argv))
{
    char text[16];
    int status = 0, fd;
    setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    redirect(job);
    mount_all();
    load_modules();
    pid_t pid = fork();
    if (pid == 0)
        exit(run_program(job, program));
    for (pid_t got = 0; pid > 0 && got != pid;)
        got = waitpid(-1, &status, 0); /* orphans come here as well */
    int len = snprintf(text, sizeof text, "%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128);
    fd = open_in(job, "rc", O_WRONLY | O_CREAT);
    if (fd < 0 || write(fd, text, (size_t)len) != len)
        lab_say("cannot write the result: %s", strerror(errno));
    sync();
    reboot(RB_POWER_OFF);
    _exit(1);
}
