/* The suites of this folder: one X(name) for each TEST_SUITE(name). */
#define TEST_SUITES(X) \
    X(faults) \
    X(link) \
    X(pace) \
    X(rounds) \
    X(rps)
