/* Lists of edges: the text, what is wrong with it, and which nodes may go by it. */
#include "sleet_test.h"
#include "strategy/edge_list.h"
#include "strategy/strategy.h"
#include <stdlib.h>
#include <string.h>

static bool parse(struct edge_list *l, const char *text, struct edge_fault *f)
{
    return edge_list_parse(l, text, strlen(text), f);
}

static void an_edge_stands_on_a_line(void)
{
    struct edge_list l;
    struct edge_fault f;
    uint32_t n;
    REQUIRE(parse(&l, "# three\n\n 9 2 # nine\r\n\t2\t18446744073709551615\n2 7", &f));
    CHECK_EQ(l.n, 6);
    const struct arc *a = edge_list_of(&l, 2, &n);
    CHECK(a && n == 3 && a[0].to == 7 && a[1].to == 9 && a[2].to == UINT64_MAX);
    CHECK(a && a[0].line == 5 && a[1].line == 3 && a[2].line == 4);
    CHECK(edge_list_of(&l, UINT64_MAX, &n) && n == 1);
    CHECK(edge_list_of(&l, 3, &n) == NULL && n == 0);
    CHECK_EQ(edge_list_stranger(&l, (uint64_t[]){9, UINT64_MAX, 2, 5, 7}, 5), 0);
    CHECK_EQ(edge_list_stranger(&l, (uint64_t[]){1, 2, 9}, 3), 4); /* the first of two lines */
    edge_list_free(&l);
}

struct wrong {
    const char *text;
    uint32_t line;
    const char *why; /* part of it */
};

static void what_is_wrong_has_a_line(void)
{
    static const struct wrong all[] = {
        {"", 0, "no edge"}, {"# 1 2\n", 0, "no edge"}, {"1 2\n3", 2, "ids of two nodes"}, {"1 2 3", 1, "ids of two nodes"},
        {"1 2\n1,3", 2, "ids of two nodes"}, {"1 0", 1, "ids of two nodes"}, {"1 -2", 1, "ids of two nodes"}, {"1 2x", 1, "ids of two nodes"},
        {"1 18446744073709551616", 1, "ids of two nodes"}, {"1 2\n\n2 2", 3, "of its own"}, {"1 2\n2 3\n# again\n1 2", 4, "twice"},
        {"1 2\n2 3\n2 1", 3, "twice"}, {"1 2\n3 4", 2, "no way leads"}, {"5 6\n6 7\n5 7\n9 8", 4, "no way leads"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct edge_list l;
        struct edge_fault f;
        bool right = !parse(&l, all[i].text, &f) && f.line == all[i].line && strstr(f.why, all[i].why);
        if (!CHECK(right))
            printf("%s: line %u, %s\n", all[i].text, f.line, f.why ? f.why : "none");
    }
}

/* A node with 16 neighbours may be, one with 17 not: the line that is too many is named. */
static void neighbours_are_16_at_most(void)
{
    char text[512] = "";
    struct edge_list l;
    struct edge_fault f;
    for (int i = 2; i <= 18; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%d 1\n", i);
        CHECK(parse(&l, text, &f) == (i < 18));
        edge_list_free(&l);
    }
    CHECK_EQ(f.line, 17);
    CHECK(f.why && strstr(f.why, "16 neighbours"));
}

/* A ring of n nodes in text; to be freed. */
static char *ring(uint32_t n)
{
    char *text = malloc(n * 16u), *p = text;
    for (uint32_t i = 0; text && i < n; i++)
        p += sprintf(p, "%u %u\n", i + 1, (i + 1) % n + 1);
    return text;
}

static void nodes_are_1024_at_most(void)
{
    for (uint32_t n = 1024; n <= 1025; n++) {
        struct edge_list l;
        struct edge_fault f;
        char *text = ring(n);
        REQUIRE(text);
        CHECK(parse(&l, text, &f) == (n == 1024));
        CHECK(n == 1024 || (f.line && strstr(f.why, "1024")));
        edge_list_free(&l);
        free(text);
    }
}

/* Equal lists have equal numbers, however they are written. */
static void numbers_are_of_the_edges(void)
{
    static const char *const texts[] = {"1 2\n2 3\n3 1", "3 1\n# x\n3 2\n2 1\n", "1 2\n2 3"};
    struct edge_list l[3];
    struct edge_fault f;
    for (int i = 0; i < 3; i++)
        REQUIRE(parse(&l[i], texts[i], &f));
    CHECK(l[0].digest[0] && l[0].digest[1]);
    CHECK_MEM(l[0].digest, l[1].digest, sizeof l[0].digest);
    CHECK(memcmp(l[0].digest, l[2].digest, sizeof l[0].digest) != 0);
    for (int i = 0; i < 3; i++)
        edge_list_free(&l[i]);
}

static void a_kind_fits_one_list(void)
{
    struct edge_list l;
    struct edge_fault f;
    struct set_kind k = {.payload = SLEET_MODEL, .strategy = SLEET_GRAPH}, rps = {.payload = SLEET_MODEL, .strategy = SLEET_RPS};
    REQUIRE(parse(&l, "1 2\n2 3\n3 1", &f));
    CHECK(edge_list_fit(NULL, 1, &rps) == NULL);
    CHECK(edge_list_fit(&l, 9, &rps) == NULL && rps.numbers[0] == 0);
    const char *none = edge_list_fit(NULL, 1, &k), *stranger = edge_list_fit(&l, 4, &k);
    CHECK(none && strstr(none, "job.edges"));
    CHECK(stranger && strstr(stranger, "no edge"));
    CHECK(edge_list_fit(&l, 1, &k) == NULL);
    CHECK_MEM(k.numbers, l.digest, sizeof k.numbers);
    CHECK(edge_list_fit(&l, 2, &k) == NULL);
    k.numbers[1] ^= 1;
    const char *other = edge_list_fit(&l, 2, &k);
    CHECK(other && strstr(other, "another list"));
    edge_list_free(&l);
}

TEST_SUITE(edge_list) = {
    TEST(an_edge_stands_on_a_line),
    TEST(what_is_wrong_has_a_line),
    TEST(neighbours_are_16_at_most),
    TEST(nodes_are_1024_at_most),
    TEST(numbers_are_of_the_edges),
    TEST(a_kind_fits_one_list),
    TEST_END,
};
