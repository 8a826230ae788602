#include "daemon/address.h"
#include "sleet_test.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static sleet_addr addr(const char *text)
{
    sleet_addr a = {.port = 0};
    if (inet_pton(AF_INET, text, a.ip + 12) == 1)
        a.ip[10] = a.ip[11] = 0xff;
    else
        CHECK_EQ(inet_pton(AF_INET6, text, a.ip), 1);
    return a;
}

/* A machine with everything: two networks, two families, a bridge, one interface down. */
static struct local_address machine[9];
static void build(void)
{
    static const struct {
        const char *name, *ip;
        bool up, loopback;
    } rows[] = {{"lo", "127.0.0.1", true, true},     {"lo", "::1", true, true},
                {"down0", "10.9.0.1", false, false}, {"slow0", "10.1.0.5", true, false},
                {"fast0", "10.2.0.5", true, false},  {"fast0", "2001:db8::5", true, false},
                {"fast0", "fe80::5", true, false},   {"slow0", "169.254.3.4", true, false},
                {"lo", "10.255.0.1", true, true}};
    for (unsigned i = 0; i < 9; i++) {
        machine[i] = (struct local_address){.addr = addr(rows[i].ip), .up = rows[i].up,
                                            .loopback = rows[i].loopback};
        snprintf(machine[i].name, sizeof machine[i].name, "%s", rows[i].name);
    }
    machine[6].addr.scope = 3;
}

static struct address_choice choice;

/* The two addresses that others are told, "-" for none. */
static const char *chosen(const char *rule, const char *bound, const char *hint, bool inet6)
{
    static char text[200];
    struct address_rule rules[4];
    sleet_addr exact[4];
    char items[200], *rest = NULL, at[ADDRESS_FAMILIES][80];
    uint32_t n = 0;
    build();
    struct address_scene s = {machine, 9, addr(bound), inet6, {addr(hint), addr("::")}};
    s.bound.port = 7700;
    snprintf(items, sizeof items, "%s", rule);
    for (char *item = strtok_r(items, " ", &rest); item; item = strtok_r(NULL, " ", &rest), n++) {
        char host[256], port[6];
        CHECK(address_rule_parse(&rules[n], item));
        if (rules[n].type == RULE_EXACT && CHECK(address_split(item, host, port))) {
            exact[n] = addr(host);
            exact[n].port = (uint16_t)atoi(port);
        }
    }
    address_choose(&choice, rules, exact, n, &s);
    for (unsigned f = 0; f < ADDRESS_FAMILIES; f++) {
        snprintf(at[f], sizeof at[f], "-");
        if (choice.at[f].port)
            address_format(&choice.at[f], at[f]);
    }
    snprintf(text, sizeof text, "%s %s", at[ADDRESS_V4], at[ADDRESS_V6]);
    return text;
}

static void takes_what_others_can_use(void)
{
    CHECK_STR(chosen("auto", "::", "0.0.0.0", true), "10.1.0.5:7700 [2001:db8::5]:7700");
    CHECK_STR(chosen("auto", "0.0.0.0", "0.0.0.0", false), "10.1.0.5:7700 -");
    /* the way to the others decides between several */
    CHECK_STR(chosen("auto", "::", "10.2.0.5", true), "10.2.0.5:7700 [2001:db8::5]:7700");
    /* a socket of one address has but that */
    CHECK_STR(chosen("auto", "10.2.0.5", "0.0.0.0", false), "10.2.0.5:7700 -");
    CHECK_STR(chosen("auto", "2001:db8::5", "0.0.0.0", true), "- [2001:db8::5]:7700");
    CHECK_STR(chosen("auto", "127.0.0.1", "0.0.0.0", false), "- -");
}

static void keeps_to_the_rules(void)
{
    CHECK_STR(chosen("fast0", "::", "10.1.0.5", true), "10.2.0.5:7700 [2001:db8::5]:7700");
    CHECK_STR(chosen("10.2.0.0/16", "::", "10.1.0.5", true), "10.2.0.5:7700 -");
    CHECK_STR(chosen("10.2.0.0/15", "::", "0.0.0.0", true), "10.2.0.5:7700 -");
    CHECK_STR(chosen("10.0.0.0/14", "::", "0.0.0.0", true), "10.1.0.5:7700 -");
    CHECK_STR(chosen("0.0.0.0/0", "::", "0.0.0.0", true), "10.1.0.5:7700 -");
    CHECK_STR(chosen("2001:db8::/32", "::", "0.0.0.0", true), "- [2001:db8::5]:7700");
    CHECK_STR(chosen("192.0.2.7:9000", "::", "0.0.0.0", true), "192.0.2.7:9000 -");
    /* the first rule that has one wins, for each family */
    CHECK_STR(chosen("172.16.0.0/12 10.2.0.0/16 auto", "::", "10.1.0.5", true),
              "10.2.0.5:7700 [2001:db8::5]:7700");
    CHECK_STR(chosen("eth7", "::", "0.0.0.0", true), "- -");
    /* whoever asks for an address of the loopback interface gets it, but 127.0.0.1 */
    CHECK_STR(chosen("lo", "::", "0.0.0.0", true), "10.255.0.1:7700 -");
}

static void says_why_not(void)
{
    static const char *const reasons[] = {
        "lo 127.0.0.1: loopback", "lo ::1: loopback", "down0 10.9.0.1: the interface is down",
        "slow0 169.254.3.4: link-local", "fast0 fe80::5%3: link-local",
        "lo 10.255.0.1: of the loopback interface"};
    chosen("auto", "::", "0.0.0.0", true);
    for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++)
        CHECK(strstr(choice.why, reasons[i]) != NULL);
    chosen("127.0.0.1:7700", "::", "0.0.0.0", true);
    CHECK_STR(choice.why, "node.advertise 127.0.0.1: loopback");
    chosen("[2001:db8::1]:7700", "0.0.0.0", "0.0.0.0", false);
    CHECK_STR(choice.why, "node.advertise 2001:db8::1: IPv6, the daemon listens on IPv4");
    chosen("fast0", "10.1.0.5", "0.0.0.0", false);
    CHECK(strstr(choice.why, "slow0 10.1.0.5: another interface") != NULL);
    CHECK(strstr(choice.why, "fast0 10.2.0.5: the daemon does not listen on it") != NULL);
}

static void reads_rules(void)
{
    static const char *const bad[] = {"", "10.0.0.0/33", "10.0.0/8", "::/129", "/8", "10.0.0.0/",
                                      "10.0.0.0/8x", "10.0.0.0/-1", "10.0.0.1:0", ":7700", "a b",
                                      "a-name-of-sixteen", "[::1", "1.2.3.4:70000"};
    struct address_rule r;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!address_rule_parse(&r, bad[i]));
    CHECK(address_rule_parse(&r, "0.0.0.0/0"));
    CHECK(address_rule_parse(&r, "eth0.100"));
    CHECK(address_rule_parse(&r, "[2001:db8::1]:7700"));
}

static const char *reach(const char *bound, const char *peer)
{
    sleet_addr b = addr(bound), p = addr(peer);
    const char *why = address_unreachable(&b, &p);
    return why ? why : "fine";
}

static void knows_peers_that_cannot_be(void)
{
    CHECK_STR(reach("127.0.0.1", "127.0.0.2"), "fine");
    CHECK_STR(reach("10.0.0.1", "10.0.0.2"), "fine");
    CHECK_STR(reach("::", "127.0.0.1"), "fine");
    CHECK(strstr(reach("127.0.0.1", "10.0.0.2"), "loopback") != NULL);
    CHECK(strstr(reach("::1", "2001:db8::1"), "loopback") != NULL);
    CHECK(strstr(reach("::", "0.0.0.0"), "no address") != NULL);
    CHECK(strstr(reach("::", "::"), "no address") != NULL);
    CHECK(strstr(reach("::", "224.0.0.1"), "multicast") != NULL);
    CHECK(strstr(reach("::", "fe80::1"), "%eth0") != NULL);
}

TEST_SUITE(address) = {TEST(takes_what_others_can_use),
                       TEST(keeps_to_the_rules),
                       TEST(says_why_not),
                       TEST(reads_rules),
                       TEST(knows_peers_that_cannot_be),
                       TEST_END};
