#include "reports/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- text ------------------------------------------------------------- */

/* The character at *text, which moves past it; U+FFFD for a byte that is no
 * UTF-8 (RFC 3629). */
static uint32_t next_character(const char **text)
{
    const unsigned char *s = (const unsigned char *)*text;
    int length = s[0] < 0x80   ? 1
                 : s[0] < 0xc2 ? 0
                 : s[0] < 0xe0 ? 2
                 : s[0] < 0xf0 ? 3
                 : s[0] < 0xf5 ? 4
                               : 0;
    uint32_t c = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            length = 0;
            break;
        }
        c = c << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (!length || c < least[length] || c > 0x10ffff ||
        (c >= 0xd800 && c < 0xe000)) {
        (*text)++;
        return 0xfffd;
    }
    *text += length;
    return c;
}

/* Controls, marks of direction, and what XML does not allow. */
static bool is_unprintable(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) ||
           (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || (c & 0xfffe) == 0xfffe;
}

static void add_character(Str *out, const char **text)
{
    const char *start = *text;
    uint32_t c = next_character(text);
    if (c == '\n' || c == '\t' || c == '\r')
        str_add(out, " ");
    else if (c == '<')
        str_add(out, "&lt;");
    else if (c == '>')
        str_add(out, "&gt;");
    else if (c == '&')
        str_add(out, "&amp;");
    else if (c == '"')
        str_add(out, "&quot;");
    else if (c == '\'')
        str_add(out, "&#39;");
    else if (c == 0xfffd || is_unprintable(c))
        str_add(out, "\xef\xbf\xbd");
    else
        str_add_bytes(out, start, (size_t)(*text - start));
}

void html_add(Str *out, const char *text)
{
    while (*text)
        add_character(out, &text);
}

int html_length(const char *text)
{
    int count = 0;
    for (; *text; count++)
        next_character(&text);
    return count;
}

void html_add_short(Str *out, const char *text, int limit)
{
    bool cut = html_length(text) > limit;
    for (int i = 0; *text && i < limit - cut; i++)
        add_character(out, &text);
    if (cut)
        str_add(out, "…");
}

void html_add_name(Str *out, const char *element, const char *class,
                   const char *text)
{
    str_addf(out, "<%s class=\"name%s%s\" title=\"", element,
             *class ? " " : "", class);
    html_add(out, text);
    str_add(out, "\">");
    html_add(out, text);
    str_addf(out, "</%s>", element);
}

void html_cell(Str *out, const char *class, const char *text)
{
    if (*class)
        str_addf(out, "<td class=\"%s\">", class);
    else
        str_add(out, "<td>");
    html_add(out, text);
    str_add(out, "</td>");
}

void html_head(Str *out, const char *names)
{
    str_add(out, "<thead><tr>");
    while (*names) {
        size_t length = strcspn(names, "|");
        bool left = *names == '<';
        str_add(out, left ? "<th class=\"left\">" : "<th>");
        str_add_bytes(out, names + left, length - left);
        str_add(out, "</th>");
        names += length + (names[length] == '|');
    }
    str_add(out, "</tr></thead>\n");
}

/* ---- numbers ---------------------------------------------------------- */

/* Three digits, never an exponent within 0.001 .. 99999. */
static const char *digits(Arena *arena, double value)
{
    double size = fabs(value);
    if (value == 0)
        return "0";
    if (size < 1e-3 || size >= 1e5)
        return arena_printf(arena, "%.2e", value);
    int decimals = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return arena_printf(arena, "%.*f", decimals, value);
}

Scale scale_for(Arena *arena, const char *unit, double largest)
{
    double size = fabs(largest);
    if (!strcmp(unit, "s"))
        return size >= 1      ? (Scale){1, "s"}
               : size >= 1e-3 ? (Scale){1e-3, "ms"}
               : size >= 1e-6 ? (Scale){1e-6, "µs"}
                              : (Scale){1e-9, "ns"};
    if (!strcmp(unit, "bytes"))
        return size >= 0x1p30   ? (Scale){0x1p30, "GiB"}
               : size >= 0x1p20 ? (Scale){0x1p20, "MiB"}
               : size >= 0x1p10 ? (Scale){0x1p10, "KiB"}
                                : (Scale){1, "B"};
    if (!strcmp(unit, "ratio"))
        return (Scale){0.01, "%"};
    if (!strcmp(unit, "db"))
        return (Scale){1, "dB"};
    if (!strcmp(unit, "gflops"))
        return (Scale){1, "GFLOP/s"};
    if (!strcmp(unit, "count"))
        return size >= 1e9   ? (Scale){1e9, "G"}
               : size >= 1e6 ? (Scale){1e6, "M"}
               : size >= 1e5 ? (Scale){1e3, "k"}
                             : (Scale){1, ""};
    /* Without a unit, as an error of 4.3e-06: thousands, too. */
    if (*unit || !isfinite(size) || size == 0 || (size >= 0.1 && size < 1e5))
        return (Scale){1, unit};
    double power = 3 * floor(log10(size) / 3);
    return (Scale){pow(10, power), arena_printf(arena, "1e%.0f", power)};
}

/* A plain number where that is short. */
static const char *fixed(Arena *arena, double value, int decimals)
{
    if (fabs(value) < 1e5)
        return arena_printf(arena, "%.*f", decimals, value);
    return arena_printf(arena, "%.2e", value);
}

const char *format_share(Arena *arena, double share, int decimals)
{
    return isfinite(share)
               ? arena_printf(arena, "%s%s %%", share < 0 ? "−" : "",
                              fixed(arena, fabs(100 * share), decimals))
               : "–";
}

const char *format_value(Arena *arena, const char *unit, double value)
{
    if (!isfinite(value))
        return "–";
    if (!*unit)
        return arena_printf(
            arena, fabs(value) < 0.01 && value != 0 ? "%.1e" : "%.4g", value);
    Scale s = scale_for(arena, unit, value);
    double shown = value / s.divisor;
    if (!strcmp(unit, "ratio"))
        return format_share(arena, value, 2);
    if (!strcmp(unit, "db"))
        return arena_printf(arena, "%s dB", fixed(arena, shown, 1));
    if (!strcmp(unit, "count") && s.divisor == 1)
        return arena_printf(arena, "%.6g", shown);
    return arena_printf(arena, "%s%s%s", digits(arena, shown),
                        *s.unit ? " " : "", s.unit);
}

const char *format_change(Arena *arena, const char *unit, double before,
                          double after)
{
    double change = after - before;
    const char *sign = change < 0 ? "−" : "+";
    change = fabs(change);
    if (!strcmp(unit, "ratio"))
        return arena_printf(arena, "%s%s points", sign,
                            fixed(arena, 100 * change, 2));
    if (!strcmp(unit, "db"))
        return arena_printf(arena, "%s%s dB", sign, fixed(arena, change, 1));
    if (before == 0)
        return arena_printf(arena, "%s%s", sign,
                            format_value(arena, unit, change));
    change = 100 * change / fabs(before);
    if (change >= 1000)
        return arena_printf(arena, "×%.3g", after / before);
    return arena_printf(arena, "%s%.*f %%", sign, change >= 100 ? 0 : 1,
                        change);
}

const char *format_ratio(Arena *arena, double ratio)
{
    if (isnan(ratio))
        return "–";
    return fixed(arena, ratio, ratio >= 100 ? 0 : 2);
}

const char *format_interval(Arena *arena, double ratio, double low,
                            double high)
{
    if (isnan(low) || isnan(high))
        return format_ratio(arena, ratio);
    int decimals = high - low < 0.02 ? 3 : ratio < 100 ? 2 : 0;
    return arena_printf(arena, "%s [%s, %s]", fixed(arena, ratio, decimals),
                        fixed(arena, low, decimals),
                        fixed(arena, high, decimals));
}

/* ---- commits ---------------------------------------------------------- */

static const char *formatted(Arena *arena, int64_t time, const char *format)
{
    char text[64];
    time_t when = (time_t)time;
    struct tm utc;
    if (!time || !gmtime_r(&when, &utc) ||
        !strftime(text, sizeof text, format, &utc))
        return "unknown";
    return arena_strdup(arena, text);
}

const char *format_time(Arena *arena, int64_t time)
{
    return formatted(arena, time, "%Y-%m-%d %H:%M");
}

const char *format_date(Arena *arena, int64_t time)
{
    return formatted(arena, time, "%Y-%m-%d");
}

const char *format_commit(Arena *arena, const char *commit, bool dirty)
{
    return arena_printf(arena, "%.7s%s", commit, dirty ? "+" : "");
}
