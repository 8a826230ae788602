/* bar.c - what an experiment has to show: parsed, and held against figures. */
#include "recipe/recipe.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *blanks(const char *p)
{
    return p + strspn(p, " \t");
}

static bool number(const char **p, double *out)
{
    char *end;
    if (!isdigit((unsigned char)**p) && **p != '.' && **p != '-')
        return false;
    *out = strtod(*p, &end);
    if (end == *p || !isfinite(*out))
        return false;
    *p = blanks(end);
    return true;
}

/* KEY or RUN.KEY, of letters, digits, _, - and one dot. */
static bool figure(const char **p, char out[64])
{
    size_t n = 0;
    if (!isalpha((unsigned char)**p))
        return false;
    while (isalnum((unsigned char)(*p)[n]) || ((*p)[n] && strchr("_-.", (*p)[n])))
        n++;
    if (n >= 64)
        return false;
    memcpy(out, *p, n);
    out[n] = '\0';
    *p = blanks(*p + n);
    return true;
}

static bool sign(const char **p, char wanted)
{
    if (**p != wanted)
        return false;
    *p = blanks(*p + 1);
    return true;
}

static bool right_side(const char **p, struct recipe_bar *b)
{
    double v;
    b->factor = 1;
    if (number(p, &v)) {
        if (!sign(p, '*')) {
            b->offset = v;
            return true;
        }
        b->factor = v;
    }
    if (!figure(p, b->right))
        return false;
    if (sign(p, '+'))
        return number(p, &b->offset);
    if (!sign(p, '-'))
        return true;
    if (!number(p, &v))
        return false;
    b->offset = -v;
    return true;
}

static bool tolerance(const char **p, struct recipe_bar *b)
{
    if (strncmp(*p, "within", 6) != 0)
        return false;
    *p = blanks(*p + 6);
    if (!number(p, &b->tolerance) || b->tolerance < 0)
        return false;
    b->kind = sign(p, '%') ? RECIPE_PERCENT : sign(p, 'x') ? RECIPE_TIMES : RECIPE_ABSOLUTE;
    return b->kind != RECIPE_TIMES || b->tolerance >= 1;
}

bool bar_parse(struct recipe_bar *b, const char *text)
{
    const char *p = blanks(text);
    *b = (struct recipe_bar){.text = text};
    if (!figure(&p, b->left))
        return false;
    if (sign(&p, '='))
        b->op = RECIPE_EQUAL;
    else if (strncmp(p, "<=", 2) == 0 || strncmp(p, ">=", 2) == 0)
        b->op = *p == '<' ? RECIPE_MOST : RECIPE_LEAST, p = blanks(p + 2);
    else
        return false;
    if (!right_side(&p, b) || (b->op == RECIPE_EQUAL && *p && !tolerance(&p, b)))
        return false;
    return !*p;
}

bool bar_holds(const struct recipe_bar *b, double left, double right)
{
    double value = b->factor * right * (b->right[0] != '\0') + b->offset;
    if (!isfinite(left) || !isfinite(value))
        return false;
    switch (b->op) {
    case RECIPE_MOST:
        return left <= value;
    case RECIPE_LEAST:
        return left >= value;
    default:
        break;
    }
    if (b->kind == RECIPE_TIMES)
        return left * value > 0 && left / value <= b->tolerance && value / left <= b->tolerance;
    double room = b->kind == RECIPE_PERCENT ? fabs(value) * b->tolerance / 100 : b->tolerance;
    return fabs(left - value) <= room * (1 + 1e-9);
}
