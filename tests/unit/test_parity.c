/* The code itself: any rows bring back as many blocks, and what is left is what theory says. */
#include "base/rng.h"
#include "protect/parity.h"
#include "sleet_test.h"
#include <string.h>

#define DATA PARITY_DATA_MAX
#define ROWS PARITY_ROWS_MAX
#define LEN PARITY_BLOCK_MAX

static uint8_t data[DATA][LEN], rows[ROWS][LEN], sums[ROWS][LEN], back[ROWS][LEN];

/* A product in GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1, bit by bit. */
static uint8_t times(uint8_t a, uint8_t b)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 8; i++)
        if (b >> i & 1)
            sum ^= (unsigned)a << i;
    for (unsigned i = 15; i >= 8; i--)
        if (sum >> i & 1)
            sum ^= 0x11du << (i - 8);
    return (uint8_t)sum;
}

static uint8_t inverse(uint8_t a)
{
    for (unsigned b = 1; b < 256; b++)
        if (times(a, (uint8_t)b) == 1)
            return (uint8_t)b;
    return 0;
}

static void pointers(uint8_t *to[ROWS], uint8_t (*from)[LEN])
{
    for (uint32_t i = 0; i < ROWS; i++)
        to[i] = from[i];
}

static void fill(sleet_rng *rng, uint32_t k, size_t len)
{
    for (uint32_t i = 0; i < k; i++)
        for (size_t b = 0; b < len; b++)
            data[i][b] = (uint8_t)rng_next(rng);
}

static void encode(uint32_t k, uint32_t m, size_t len)
{
    uint8_t *to[ROWS];
    pointers(to, rows);
    memset(rows, 0, sizeof rows);
    for (uint32_t i = 0; i < k; i++)
        parity_add(to, m, i, data[i], len);
}

/* Lose the marked of k blocks, solve with the u rows named. */
static bool comes_back(uint32_t k, uint64_t lost, const uint8_t *row, uint32_t u, size_t len)
{
    uint8_t *sum[ROWS], *all[ROWS], *out[ROWS], missing[ROWS];
    bool same = true;
    memcpy(sums, rows, sizeof sums);
    pointers(all, sums);
    pointers(out, back);
    for (uint32_t i = 0, n = 0; i < k; i++) {
        if (lost >> i & 1)
            missing[n++] = (uint8_t)i;
        else
            parity_add(all, ROWS, i, data[i], len);
    }
    for (uint32_t i = 0; i < u; i++)
        sum[i] = sums[row[i]];
    parity_solve(out, missing, sum, row, u, len);
    for (uint32_t i = 0; i < u; i++)
        same &= memcmp(out[i], data[missing[i]], len) == 0;
    return same;
}

static void draw(sleet_rng *rng, uint8_t *to, uint32_t n, uint32_t of)
{
    uint64_t taken = 0;
    for (uint32_t i = 0; i < n;) {
        uint32_t x = rng_below(rng, of);
        if (taken >> x & 1)
            continue;
        taken |= UINT64_C(1) << x;
        to[i++] = (uint8_t)x;
    }
}

static uint64_t bits_of(const uint8_t *list, uint32_t n)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < n; i++)
        bits |= UINT64_C(1) << list[i];
    return bits;
}

/* What ISA-L computes is the Cauchy code of the header. */
static void rows_are_those_of_the_definition(void)
{
    sleet_rng rng = {test_seed()};
    fill(&rng, DATA, 80);
    encode(DATA, ROWS, 80);
    for (uint32_t j = 0; j < ROWS; j++) {
        for (size_t b = 0; b < 80; b += 13) {
            uint8_t sum = 0;
            for (uint32_t i = 0; i < DATA; i++)
                sum ^= times(inverse((uint8_t)((DATA + j) ^ i)), data[i][b]);
            CHECK_EQ(rows[j][b], sum);
        }
    }
}

static void any_rows_bring_back_as_many_blocks(void)
{
    static const uint32_t ks[] = {1, 2, 8, 32, 63, 64}, ms[] = {1, 4, 8, 16, 32};
    static const size_t lens[] = {1, 31, 64, 65, LEN};
    sleet_rng rng = {test_seed()};
    for (uint32_t t = 0; t < test_repeats(1500); t++) {
        uint32_t k = ks[t % 6], m = ms[t / 6 % 5], u = 1 + rng_below(&rng, m < k ? m : k);
        size_t len = lens[t / 30 % 5];
        uint8_t lost[ROWS], row[ROWS];
        fill(&rng, k, len);
        encode(k, ROWS, len);
        draw(&rng, lost, u, k);
        draw(&rng, row, u, m);
        if (!CHECK(comes_back(k, bits_of(lost, u), row, u, len)))
            printf("k %u m %u u %u len %zu\n", k, m, u, len);
    }
}

/* All single losses and all pairs, by all rows and all pairs of the usual code. */
static void all_pairs_come_back(void)
{
    sleet_rng rng = {test_seed()};
    fill(&rng, DATA, 1);
    encode(DATA, ROWS, 1);
    uint32_t step = test_repeats(10) == 10 ? 1 : 7;
    for (uint8_t a = 0; a < 8; a++)
        for (uint32_t i = 0; i < DATA; i++)
            CHECK(comes_back(DATA, UINT64_C(1) << i, &a, 1, 1));
    for (uint8_t a = 0; a < 8; a++) {
        for (uint8_t b = (uint8_t)(a + 1); b < 8; b++) {
            uint8_t row[2] = {b, a};
            for (uint32_t i = 0; i < DATA; i += step)
                for (uint32_t j = i + 1; j < DATA; j += 5)
                    CHECK(comes_back(DATA, UINT64_C(1) << i | UINT64_C(1) << j, row, 2, 1));
        }
    }
}

static void zeros_ones_and_short_blocks(void)
{
    static const uint8_t row[] = {31, 0, 7};
    uint64_t lost = UINT64_C(1) << 63 | 1 | 1 << 5;
    memset(data, 0, sizeof data);
    encode(DATA, ROWS, LEN);
    for (uint32_t j = 0; j < ROWS; j++)
        for (size_t b = 0; b < LEN; b++)
            CHECK_EQ(rows[j][b], 0);
    CHECK(comes_back(DATA, lost, row, 3, LEN));
    memset(data, 0xff, sizeof data);
    encode(DATA, ROWS, LEN);
    CHECK(comes_back(DATA, lost, row, 3, LEN));
    /* Blocks of other lengths are as if filled up with zeros. */
    uint8_t *to[ROWS], *all[ROWS];
    pointers(to, rows);
    pointers(all, sums);
    memset(rows, 0, sizeof rows);
    memset(sums, 0, sizeof sums);
    for (uint32_t i = 0; i < DATA; i++) {
        memset(data[i] + 10 * i, 0, LEN - 10 * i);
        parity_add(to, ROWS, i, data[i], 10 * i);
        parity_add(all, ROWS, i, data[i], LEN);
    }
    CHECK_MEM(rows, sums, sizeof rows);
    for (uint32_t i = 0; i < DATA; i++) /* twice is not at all */
        parity_add(all, ROWS, i, data[i], LEN);
    memset(rows, 0, sizeof rows);
    CHECK_MEM(rows, sums, sizeof rows);
}

/* ---- residual loss ------------------------------------------------------------------------- */

/* A Gilbert channel: everything is lost while it is bad, bursts have a mean length.  burst 1 /
 * (1 - p) is independent loss. */
struct channel {
    double p, burst;
    bool bad;
    sleet_rng rng;
};

static double to_bad(const struct channel *c) { return c->p / (1 - c->p) / c->burst; }

static bool loses(struct channel *c)
{
    c->bad = c->bad ? rng_double(&c->rng) >= 1 / c->burst : rng_double(&c->rng) < to_bad(c);
    return c->bad;
}

/* Of k + m symbols that are `depth` apart in the channel: the share of data lost where more than m
 * symbols are, by dynamic programming over what is lost. */
static double theory(const struct channel *c, uint32_t k, uint32_t m, uint32_t depth)
{
    static double now[2][DATA + 1][ROWS + 1], next[2][DATA + 1][ROWS + 1];
    double stay = 1 - 1 / c->burst - to_bad(c), far = pow(stay, depth), left = 0;
    memset(now, 0, sizeof now);
    now[0][0][0] = 1 - c->p;
    now[1][0][0] = c->p;
    for (uint32_t i = 0; i < k + m; i++) {
        memset(next, 0, sizeof next);
        for (uint32_t s = 0; s < 2; s++) {
            double bad = c->p + (s ? 1 - c->p : -c->p) * far;
            for (uint32_t d = 0; d <= k && d <= i; d++) {
                for (uint32_t r = 0; r <= m; r++) {
                    next[0][d][r] += now[s][d][r] * (1 - bad);
                    if (i < k && d < k)
                        next[1][d + 1][r] += now[s][d][r] * bad;
                    else if (i >= k && r < m)
                        next[1][d][r + 1] += now[s][d][r] * bad;
                }
            }
        }
        memcpy(now, next, sizeof now);
    }
    for (uint32_t d = 0; d <= k; d++)
        for (uint32_t r = 0; r <= m; r++)
            left += d + r > m ? (now[0][d][r] + now[1][d][r]) * d / k : 0;
    return left;
}

/* The same measured: windows of `depth` groups through the channel, what can be solved is. */
static double measured(struct channel *c, uint32_t k, uint32_t m, uint32_t depth, uint32_t groups,
                       double *deviation)
{
    static uint64_t lost[PARITY_DEPTH_MAX];
    static uint32_t rows_lost[PARITY_DEPTH_MAX];
    double sum = 0, squares = 0;
    uint32_t windows = groups / depth;
    for (uint32_t w = 0; w < windows; w++) {
        double left = 0;
        memset(lost, 0, sizeof lost);
        memset(rows_lost, 0, sizeof rows_lost);
        for (uint32_t i = 0; i < k; i++)
            for (uint32_t g = 0; g < depth; g++)
                lost[g] |= (uint64_t)loses(c) << i;
        for (uint32_t j = 0; j < m; j++)
            for (uint32_t g = 0; g < depth; g++)
                rows_lost[g] |= (uint32_t)loses(c) << j;
        for (uint32_t g = 0; g < depth; g++) {
            uint8_t row[ROWS];
            uint32_t u = (uint32_t)__builtin_popcountll(lost[g]), n = 0;
            for (uint8_t j = 0; j < m && n < u; j++)
                if (!(rows_lost[g] >> j & 1))
                    row[n++] = j;
            bool solved = n == u && (u == 0 || comes_back(k, lost[g], row, u, 1));
            left += solved ? 0 : (double)u / k;
        }
        left /= depth;
        sum += left;
        squares += left * left;
    }
    double mean = sum / windows;
    *deviation = sqrt((squares / windows - mean * mean) / windows);
    return mean;
}

static void residual_loss_is_that_of_theory(void)
{
    static const struct { uint32_t k, m; } code[] = {{8, 1}, {32, 4}, {64, 8}, {32, 8}};
    static const struct { double p, burst; uint32_t depth; } path[] = {
        {0.01, 0, 1}, {0.05, 0, 1}, {0.1, 0, 1}, {0.01, 8, 1}, {0.01, 8, 8}, {0.05, 8, 1}, {0.05, 8, 8}, {0.1, 8, 8}};
    uint32_t groups = test_repeats(8000);
    for (uint32_t i = 0; i < sizeof path / sizeof path[0]; i++) {
        for (uint32_t j = 0; j < sizeof code / sizeof code[0]; j++) {
            uint32_t k = code[j].k, m = code[j].m;
            struct channel c = {path[i].p, path[i].burst > 0 ? path[i].burst : 1 / (1 - path[i].p), false,
                                {test_seed() + i}};
            double sd, expected = theory(&c, k, m, path[i].depth);
            sleet_rng rng = {test_seed()};
            fill(&rng, k, 1);
            encode(k, ROWS, 1);
            double got = measured(&c, k, m, path[i].depth, groups, &sd);
            printf("  %u+%u, p = %g, %s, %u groups interleaved: %.2e left, theory %.2e\n", k, m, path[i].p,
                   path[i].burst > 0 ? "bursts of 8" : "independent", path[i].depth, got, expected);
            double rare = sqrt(expected * (m + 2) / k / groups); /* where few groups, or none, fail */
            CHECK_NEAR(got, expected, 5 * (sd + rare) + 20.0 / groups / k);
        }
    }
}

/* ---- interleaving --------------------------------------------------------------------------- */

static void each_number_has_a_place_of_its_own(void)
{
    static uint8_t seen[40 * DATA];
    for (uint32_t depth = 1; depth <= PARITY_DEPTH_MAX; depth *= 2) {
        uint32_t n = 40 * DATA / PARITY_DEPTH_MAX * PARITY_DEPTH_MAX, last = 0;
        memset(seen, 0, sizeof seen);
        for (uint32_t i = 0; i < n; i++) {
            struct parity_place p = parity_place(i, depth);
            REQUIRE(p.group < 40 && p.position < DATA);
            CHECK_EQ(seen[p.group * DATA + p.position]++, 0);
            CHECK(i == 0 || depth == 1 || p.group != last); /* neighbours are of other groups */
            last = p.group;
        }
        for (uint32_t datagrams = 0; datagrams < n; datagrams += 37) {
            uint32_t sum = 0;
            for (uint32_t g = 0; g < 40; g++) {
                uint32_t size = parity_group_size(g, depth, datagrams), count = 0;
                for (uint32_t i = 0; i < datagrams; i++)
                    count += parity_place(i, depth).group == g;
                CHECK_EQ(size, count);
                sum += size;
            }
            CHECK_EQ(sum, datagrams);
        }
    }
    CHECK_EQ(parity_depth(0), 1);
    CHECK_EQ(parity_depth(64), 1);
    CHECK_EQ(parity_depth(65), 2);
    CHECK_EQ(parity_depth(1 << 20), PARITY_DEPTH_MAX);
    CHECK_EQ(parity_rows(64, 8), 8);
    CHECK_EQ(parity_rows(9, 8), 2);
    CHECK_EQ(parity_rows(1, 8), 1);
}

TEST_SUITE(parity) = {
    TEST(rows_are_those_of_the_definition),
    TEST(any_rows_bring_back_as_many_blocks),
    TEST(all_pairs_come_back),
    TEST(zeros_ones_and_short_blocks),
    TEST(residual_loss_is_that_of_theory),
    TEST(each_number_has_a_place_of_its_own),
    TEST_END,
};
