#include "sleet_test.h"
#include "keyfile/keyfile.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct scene {
    char folder[64], path[96];
    uint8_t key[KEY_BYTES];
};

static bool scene_open(struct scene *s)
{
    snprintf(s->folder, sizeof s->folder, "/tmp/sleet-keyfile-XXXXXX");
    for (unsigned i = 0; i < KEY_BYTES; i++)
        s->key[i] = (uint8_t)(17 * i + 1);
    if (!CHECK(mkdtemp(s->folder) != NULL))
        return false;
    snprintf(s->path, sizeof s->path, "%s/a.key", s->folder);
    return true;
}

static void scene_close(const struct scene *s)
{
    unlink(s->path);
    CHECK(rmdir(s->folder) == 0); /* no temporary file is left */
}

static void spill(const struct scene *s, const char *text, mode_t mode)
{
    FILE *f = fopen(s->path, "wb");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(s->path, mode) == 0);
}

static bool reads(const struct scene *s, enum keyfile_kind kind, uint8_t out[KEY_BYTES],
                  char why[KEYFILE_WHY])
{
    why[0] = '\0';
    return keyfile_read(kind, s->path, geteuid(), out, why);
}

static void comes_back(void)
{
    struct scene s;
    uint8_t out[KEY_BYTES];
    char why[KEYFILE_WHY];
    struct stat st;
    if (!scene_open(&s))
        return;
    for (unsigned k = 0; k < KEYFILE_KINDS; k++) {
        CHECK(keyfile_create(k, s.path, s.key, why));
        CHECK(stat(s.path, &st) == 0 && (st.st_mode & 07777) == 0600);
        CHECK(reads(&s, k, out, why));
        CHECK_MEM(out, s.key, sizeof out);
        CHECK(!reads(&s, (k + 1) % KEYFILE_KINDS, out, why));
        CHECK(strstr(why, keyfile_name(k)) && strstr(why, "wanted"));
        unlink(s.path);
    }
    scene_close(&s);
}

static void keeps_what_is_there(void)
{
    struct scene s;
    uint8_t other[KEY_BYTES] = {9}, out[KEY_BYTES];
    char why[KEYFILE_WHY];
    if (!scene_open(&s))
        return;
    CHECK(keyfile_create(KEYFILE_JOB, s.path, s.key, why));
    CHECK(!keyfile_create(KEYFILE_JOB, s.path, other, why));
    CHECK(strstr(why, "exists") != NULL);
    CHECK(reads(&s, KEYFILE_JOB, out, why));
    CHECK_MEM(out, s.key, sizeof out);
    CHECK(keyfile_replace(KEYFILE_JOB, s.path, other, why)); /* but when asked for */
    CHECK(reads(&s, KEYFILE_JOB, out, why));
    CHECK_MEM(out, other, sizeof out);
    scene_close(&s);
}

static void refuses_files_of_others(void)
{
    static const mode_t open_modes[] = {0640, 0604, 0620, 0602, 0610, 0666};
    struct scene s;
    uint8_t out[KEY_BYTES];
    char why[KEYFILE_WHY];
    if (!scene_open(&s))
        return;
    spill(&s, "sleet-job-key " DIGITS "\n", 0400);
    CHECK(reads(&s, KEYFILE_JOB, out, why));
    for (unsigned i = 0; i < sizeof open_modes / sizeof *open_modes; i++) {
        CHECK(chmod(s.path, open_modes[i]) == 0);
        CHECK(!reads(&s, KEYFILE_JOB, out, why));
        CHECK(strstr(why, "chmod 600") != NULL);
    }
    CHECK(chmod(s.path, 0600) == 0);
    if (geteuid() == 0 && CHECK(chown(s.path, 12345, 12345) == 0) &&
        access(s.path, R_OK) == 0) { /* root without its capabilities, as in distcheck, opens none of those */
        CHECK(!reads(&s, KEYFILE_JOB, out, why));
        CHECK(strstr(why, "belongs to user 12345") != NULL);
        CHECK(keyfile_read(KEYFILE_JOB, s.path, 12345, out, why));
    }
    scene_close(&s);
}

static void refuses_damage(void)
{
    static const char *const bad[] = {
        "", "\n", "sleet-job-key", "sleet-job-key \n", "sleet-job-key 00\n",
        "sleet-job-key " DIGITS "0\n", "sleet-job-key " DIGITS "\n\n", "sleet-job-key  " DIGITS "\n",
        "sleet-job-key 00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff\n",
        "sleet-job-key g0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n",
        "sleet-job-key " DIGITS " \n", "sleet-job-key " DIGITS "\nsleet-job-key " DIGITS "\n",
        "sleet-job-keys " DIGITS "\n", " sleet-job-key " DIGITS "\n"};
    struct scene s;
    uint8_t out[KEY_BYTES];
    char why[KEYFILE_WHY];
    if (!scene_open(&s))
        return;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        spill(&s, bad[i], 0600);
        CHECK(!reads(&s, KEYFILE_JOB, out, why));
        CHECK(strstr(why, s.path) != NULL);
    }
    spill(&s, "sleet-job-key " DIGITS, 0600); /* without the last newline */
    CHECK(reads(&s, KEYFILE_JOB, out, why));
    unlink(s.path);
    CHECK(!reads(&s, KEYFILE_JOB, out, why));
    CHECK(strstr(why, "keygen") != NULL);
    CHECK(mkdir(s.path, 0700) == 0);
    CHECK(!reads(&s, KEYFILE_JOB, out, why));
    CHECK(strstr(why, "a folder") != NULL);
    CHECK(!keyfile_replace(KEYFILE_JOB, s.path, s.key, why));
    CHECK(rmdir(s.path) == 0 && mkfifo(s.path, 0600) == 0);
    CHECK(!reads(&s, KEYFILE_JOB, out, why)); /* and does not wait for a writer */
    scene_close(&s);
}

static void refuses_open_folders(void)
{
    struct scene s;
    char why[KEYFILE_WHY], nowhere[200];
    if (!scene_open(&s))
        return;
    CHECK(chmod(s.folder, 0770) == 0);
    CHECK(!keyfile_create(KEYFILE_JOB, s.path, s.key, why));
    CHECK(strstr(why, "chmod go-w") != NULL);
    CHECK(chmod(s.folder, 01777) == 0); /* as /tmp is */
    CHECK(keyfile_create(KEYFILE_JOB, s.path, s.key, why));
    snprintf(nowhere, sizeof nowhere, "%s/none/a.key", s.folder);
    CHECK(!keyfile_create(KEYFILE_JOB, nowhere, s.key, why));
    CHECK(strstr(why, "No such file") != NULL);
    scene_close(&s);
}

/* RFC 7748, 6.1 (Alice, Bob), and RFC 8032, 7.1 (test 1). */
static void public_halves_are_the_known_ones(void)
{
    static const struct {
        enum keyfile_kind kind;
        const char *secret, *public_half;
    } cases[] = {
        {KEYFILE_NODE, "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
         "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"},
        {KEYFILE_NODE, "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
         "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"},
        {KEYFILE_OPERATOR, "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
         "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t secret[KEY_BYTES], half[KEY_BYTES];
        char digits[KEY_DIGITS + 1];
        CHECK(key_parse(secret, cases[i].secret));
        keyfile_public(cases[i].kind, secret, half);
        key_format(digits, half);
        CHECK_STR(digits, cases[i].public_half);
    }
}

TEST_SUITE(keyfile) = {TEST(comes_back),
                       TEST(keeps_what_is_there),
                       TEST(refuses_files_of_others),
                       TEST(refuses_damage),
                       TEST(refuses_open_folders),
                       TEST(public_halves_are_the_known_ones),
                       TEST_END};
