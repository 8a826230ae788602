/* The suites of this folder: one X(name) for each TEST_SUITE(name). */
#define TEST_SUITES(X) \
    X(aimed) \
    X(budgets) \
    X(drift) \
    X(edges) \
    X(cells) \
    X(codecs) \
    X(collect) \
    X(engine) \
    X(exchange) \
    X(estimators) \
    X(faults) \
    X(forge) \
    X(groups) \
    X(flow) \
    X(founding) \
    X(hostile) \
    X(join) \
    X(late) \
    X(liars) \
    X(link) \
    X(mutants) \
    X(nonlinear) \
    X(notice) \
    X(numbers) \
    X(parity) \
    X(partition) \
    X(payload) \
    X(pace) \
    X(refresh) \
    X(rounds) \
    X(rps) \
    X(session) \
    X(strangers) \
    X(swim) \
    X(state) \
    X(trace)
