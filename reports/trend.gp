# gnuplot -c trend.gp TABLE SVG TITLE UNIT: a line a column, by commit.
load ARG0[:strlen(ARG0)-8]."style.gp"
set output ARG2
set title ARG3 noenhanced
set ylabel ARG4
set datafile missing "?"
stats ARG1 skip 1 using 1 nooutput
runs = STATS_max
columns = int(system("head -n 1 '".ARG1."' | wc -w"))
set xrange [0.5:runs + 0.5]
set yrange [0:*]
set key autotitle columnhead
# Commits are legible for a few dozen runs: leave labels out beyond.
step = ceil(runs / 12.0)
set xtics rotate by 45 right noenhanced
plot for [c = 3:columns] ARG1 \
    using 1:c:xtic(int(column(1)) % step == 0 || runs < 12 ? strcol(2) : "") \
    with linespoints linetype c - 2
