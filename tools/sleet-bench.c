/* sleet-bench - measures the parts that put together what arrived, beside theory.
 *
 * `sleet-bench reconstruct [PART]...` prints a table a part: measured beside the formula;
 * `sleet-bench average STRATEGY` what some rounds leave of the variance among nodes.
 * The same seed gives the same rows, but for speeds.
 * Exit: 0 all rows within their tolerance, 1 one is not or a part failed, 2 usage. */
#include "sleet-bench.h"
#include "sleet.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *help;
    int (*run)(struct bench *);
} parts[] = {
    {"estimators", "mean squared error of a round's result, in rounds of simulated nodes",
     bench_estimators},
    {"parity", "data lost for good behind codes of k data and m parity datagrams", bench_parity},
    {"codecs", "error and bytes of each codec", bench_codecs},
    {"speed", "GB of f32 a second beside memcpy; never a reason to fail", bench_speed},
};
#define PARTS (sizeof parts / sizeof *parts)

static const struct option long_options[] = {{"brief", 0, NULL, 'b'}, {"json", 0, NULL, 'J'},
                                             {"seed", 1, NULL, 's'},  {"tolerance", 1, NULL, 't'},
                                             {"help", 0, NULL, 'h'},  {"version", 0, NULL, 'V'},
                                             {NULL, 0, NULL, 0}};

static void print_help(void)
{
    fputs("Usage: sleet-bench reconstruct [OPTION]... [PART]...\n"
          "       sleet-bench average STRATEGY [OPTION]...    see average --help\n"
          "Measure what is done against loss, beside what theory says.  Parts, all if none is "
          "named:\n\n",
          stdout);
    for (size_t i = 0; i < PARTS; i++)
        printf("  %-20s %s\n", parts[i].name, parts[i].help);
    fputs("\n      --brief          few rows, in seconds\n"
          "      --tolerance PCT  how far a row may be from theory, in per cent of it (5)\n"
          "      --seed S         of every random choice (1)\n"
          "      --json           one JSON object a row\n"
          "  -h, --help           this text\n"
          "      --version        the version\n"
          "\nExit: 0 every row is within its tolerance, 1 one is not, 2 usage.\n",
          stdout);
}

static int width_of(const struct bench_value *v)
{
    int least = v->text ? 16 : 9, name = (int)strlen(v->name);
    return name > least ? name : least;
}

static void print_header(const struct bench_value *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf(v[i].text ? "%-*s  " : "%*s  ", width_of(&v[i]), v[i].name);
    puts("verdict");
}

static void print_text(const struct bench_value *v, size_t count, const char *verdict)
{
    for (size_t i = 0; i < count; i++) {
        char number[32] = "";
        if (!v[i].text && isfinite(v[i].number))
            snprintf(number, sizeof number, v[i].tiny ? "%.*e" : "%.*f", v[i].digits, v[i].number);
        printf(v[i].text ? "%-*s  " : "%*s  ", width_of(&v[i]), v[i].text ? v[i].text : number);
    }
    puts(verdict);
}

static void print_json(const char *part, const struct bench_value *v, size_t count,
                       const char *verdict)
{
    printf("{\"part\":\"%s\"", part);
    for (size_t i = 0; i < count; i++) {
        printf(",\"%s\":", v[i].name);
        if (v[i].text)
            printf("\"%s\"", v[i].text);
        else if (isfinite(v[i].number))
            printf("%.6g", v[i].number);
        else
            printf("null");
    }
    printf(",\"verdict\":\"%s\"}\n", verdict);
}

void bench_row(struct bench *b, const char *part, const struct bench_value *v, size_t count,
               enum bench_verdict verdict)
{
    static const char *const words[] = {"", "ok", "OUTSIDE"};
    b->rows++;
    b->outside += verdict == BENCH_OUTSIDE;
    if (b->json) {
        print_json(part, v, count, words[verdict]);
    } else {
        if (b->part != part) {
            printf("%s%s\n\n", b->part ? "\n" : "", part);
            print_header(v, count);
        }
        print_text(v, count, words[verdict]);
    }
    b->part = part;
    fflush(stdout);
}

enum bench_verdict bench_judge(const struct bench *b, double measured, double theory,
                               double standard_error)
{
    double off = fabs(measured - theory);
    return off <= b->tolerance * fabs(theory) || off <= 4 * standard_error ? BENCH_WITHIN
                                                                           : BENCH_OUTSIDE;
}

void bench_normal(sleet_rng *rng, float *out, size_t n)
{
    for (size_t i = 0; i < n; i += 2) {
        double radius = sqrt(-2 * log(1 - rng_double(rng))),
               angle = 6.283185307179586 * rng_double(rng);
        out[i] = (float)(radius * cos(angle));
        if (i + 1 < n)
            out[i + 1] = (float)(radius * sin(angle));
    }
}

static bool seed_of(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return !errno && end != text && !*end && *text != '-';
}

static bool tolerance_of(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end) / 100;
    return end != text && !*end && *out >= 0 && *out <= 1;
}

/* The exit status, or -1 to go on. */
static int parse(struct bench *b, int argc, char **argv)
{
    int option;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        bool good = option != '?';
        if (option == 'h') {
            print_help();
            return 0;
        } else if (option == 'V') {
            printf("sleet-bench %d.%d.%d\n", SLEET_VERSION_MAJOR, SLEET_VERSION_MINOR,
                   SLEET_VERSION_PATCH);
            return 0;
        } else if (option == 'b') {
            b->brief = true;
        } else if (option == 'J') {
            b->json = true;
        } else if (option == 's' && !(good = seed_of(optarg, &b->seed))) {
            fprintf(stderr, "sleet-bench: --seed takes a number, not '%s'\n", optarg);
        } else if (option == 't' && !(good = tolerance_of(optarg, &b->tolerance))) {
            fprintf(stderr, "sleet-bench: --tolerance takes 0 to 100 per cent, not '%s'\n", optarg);
        }
        if (!good)
            return 2;
    }
    if (optind == argc || strcmp(argv[optind], "reconstruct") != 0) {
        fprintf(stderr,
                "sleet-bench: what is to be measured? There are 'reconstruct' and 'average'; see --help\n");
        return 2;
    }
    return -1;
}

static size_t part_of(const char *name)
{
    size_t i = 0;
    while (i < PARTS && strcmp(parts[i].name, name) != 0)
        i++;
    return i;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "average") == 0)
        return bench_average(argc - 1, argv + 1);
    struct bench b = {.tolerance = 0.05, .seed = 1};
    int status = parse(&b, argc, argv);
    if (status >= 0)
        return status;
    for (int i = optind + 1; i < argc; i++) {
        if (part_of(argv[i]) == PARTS) {
            fprintf(stderr, "sleet-bench: there is no part '%s'; see --help\n", argv[i]);
            return 2;
        }
    }
    for (size_t p = 0; p < PARTS && status <= 0; p++) {
        bool wanted = optind + 1 == argc;
        for (int i = optind + 1; i < argc; i++)
            wanted |= part_of(argv[i]) == p;
        if (wanted && parts[p].run(&b) < 0)
            status = 1;
    }
    if (status == 1)
        return 1;
    if (!b.json)
        printf("\n%llu rows, %llu outside their tolerance\n", (unsigned long long)b.rows,
               (unsigned long long)b.outside);
    return b.outside ? 1 : 0;
}
