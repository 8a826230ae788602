/* The suites of this folder: one X(name) for each TEST_SUITE(name). */
#define TEST_SUITES(X) \
    X(address) \
    X(aead) \
    X(batch) \
    X(budget) \
    X(cell) \
    X(checkpoint) \
    X(codec) \
    X(cookie) \
    X(edge_list) \
    X(keys) \
    X(keyfile) \
    X(common) \
    X(model) \
    X(member) \
    X(noise) \
    X(orders) \
    X(parity) \
    X(partition) \
    X(path) \
    X(peer) \
    X(power) \
    X(protect) \
    X(recipe) \
    X(replay) \
    X(rotate) \
    X(scenario) \
    X(share) \
    X(slice) \
    X(state) \
    X(strategy) \
    X(swim) \
    X(tensor) \
    X(text) \
    X(train) \
    X(wire)
