/* Runs the suites that suites.h of the program's folder names.
 *
 *   unit [--list] [SUITE | CASE | SUITE.CASE]...
 *
 * Environment: SLEET_TEST_SEED (decimal or 0x...), SLEET_TEST_FAST.
 * The last line is "PROGRAM: N passed, N failed", counted in cases.
 * Exit: 0 all passed, 1 some failed, 2 usage. */
#include "sleet_test.h"
#include "suites.h"
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#ifndef TEST_PROGRAM
#define TEST_PROGRAM "test"
#endif

#define X(name) extern const struct sleet_test name##_tests[];
TEST_SUITES(X)
#undef X

static const struct {
    const char *name;
    const struct sleet_test *tests;
} suites[] = {
#define X(name) {#name, name##_tests},
    TEST_SUITES(X)
#undef X
};

uint64_t test_seed(void)
{
    const char *text = getenv("SLEET_TEST_SEED");
    return text && *text ? strtoull(text, NULL, 0) : 1;
}

unsigned test_repeats(unsigned usual)
{
    const char *fast = getenv("SLEET_TEST_FAST");
    if (!fast || !*fast || strcmp(fast, "0") == 0)
        return usual;
    return usual < 10 ? 1 : usual / 10;
}

static bool record(bool ok, const char *text, const char *file, unsigned line)
{
    CU_assertImplementation(ok ? CU_TRUE : CU_FALSE, line, text, file, "", CU_FALSE);
    return ok;
}

bool test_check(bool ok, const char *text, const char *file, unsigned line)
{
    return record(ok, text, file, line);
}

bool test_check_i64(int64_t a, int64_t b, const char *text, const char *file, unsigned line)
{
    char line_text[512];
    if (a == b)
        return record(true, text, file, line);
    snprintf(line_text, sizeof line_text, "%s (%" PRId64 " and %" PRId64 ")", text, a, b);
    return record(false, line_text, file, line);
}

bool test_check_f64(double a, double b, double tolerance, const char *text, const char *file,
                    unsigned line)
{
    char line_text[512];
    if (fabs(a - b) <= tolerance)
        return record(true, text, file, line);
    snprintf(line_text, sizeof line_text, "%s (%.17g and %.17g, within %g)", text, a, b, tolerance);
    return record(false, line_text, file, line);
}

bool test_check_str(const char *a, const char *b, const char *text, const char *file,
                    unsigned line)
{
    char line_text[1024];
    if (a && b && strcmp(a, b) == 0)
        return record(true, text, file, line);
    snprintf(line_text, sizeof line_text, "%s (\"%.300s\" and \"%.300s\")", text, a ? a : "(null)",
             b ? b : "(null)");
    return record(false, line_text, file, line);
}

bool test_check_mem(const void *a, const void *b, size_t bytes, const char *text, const char *file,
                    unsigned line)
{
    const unsigned char *p = a, *q = b;
    char line_text[512];
    size_t i = 0;
    while (i < bytes && p[i] == q[i])
        i++;
    if (i == bytes)
        return record(true, text, file, line);
    snprintf(line_text, sizeof line_text, "%s (byte %zu of %zu: 0x%02x and 0x%02x)", text, i, bytes,
             p[i], q[i]);
    return record(false, line_text, file, line);
}

/* Whether the command line asks for this case; without names it asks for all. */
static bool wanted(const char *suite, const char *test, int argc, char **argv)
{
    size_t length = strlen(suite);
    if (argc < 2)
        return true;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, suite) == 0 || strcmp(name, test) == 0)
            return true;
        if (strncmp(name, suite, length) == 0 && name[length] == '.' &&
            strcmp(name + length + 1, test) == 0)
            return true;
    }
    return false;
}

static void list(void)
{
    for (size_t s = 0; s < sizeof suites / sizeof suites[0]; s++)
        for (const struct sleet_test *t = suites[s].tests; t->name; t++)
            printf("%s.%s\n", suites[s].name, t->name);
}

/* Hands the wanted cases to CUnit; their number, or -1 when CUnit refuses. */
static int add_cases(int argc, char **argv)
{
    int cases = 0;
    for (size_t s = 0; s < sizeof suites / sizeof suites[0]; s++) {
        CU_pSuite suite = NULL;
        for (const struct sleet_test *t = suites[s].tests; t->name; t++) {
            if (!wanted(suites[s].name, t->name, argc, argv))
                continue;
            if (!suite)
                suite = CU_add_suite(suites[s].name, NULL, NULL);
            if (!suite || !CU_add_test(suite, t->name, t->run))
                return -1;
            cases++;
        }
    }
    return cases;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list();
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    int cases = add_cases(argc, argv);
    if (cases <= 0) {
        fprintf(stderr, "%s: %s; --list shows the names\n", TEST_PROGRAM,
                cases < 0 ? CU_get_error_msg() : "no case has this name");
        CU_cleanup_registry();
        return 2;
    }
    printf("%s: seed %" PRIu64 " (SLEET_TEST_SEED)\n", TEST_PROGRAM, test_seed());
    CU_basic_set_mode(getenv("SLEET_TEST_VERBOSE") ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_ErrorCode ran = CU_basic_run_tests();
    unsigned failed = CU_get_number_of_tests_failed();
    unsigned passed = CU_get_number_of_tests_run() - failed;
    CU_cleanup_registry();
    printf("\n%s: %u passed, %u failed\n", TEST_PROGRAM, passed, failed);
    return ran == CUE_SUCCESS && failed == 0 && passed == (unsigned)cases ? 0 : 1;
}
