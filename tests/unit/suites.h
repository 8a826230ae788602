/* The suites of this folder: one X(name) for each TEST_SUITE(name). */
#define TEST_SUITES(X) \
    X(budget) \
    X(checkpoint) \
    X(keys) \
    X(model) \
    X(member) \
    X(path) \
    X(replay) \
    X(scenario) \
    X(strategy) \
    X(tensor) \
    X(train) \
    X(wire)
