# gnuplot -c ratio.gp TABLE SVG TITLE UNIT: one bar a model, with interval.
load ARG0[:strlen(ARG0)-8]."style.gp"
set output ARG2
set title ARG3 noenhanced
set ylabel ARG4
set yrange [0:*]
stats ARG1 using 1 nooutput
set xrange [0.4:STATS_max + 0.6]
set boxwidth 0.6
set style fill solid 0.7
set xtics rotate by 30 right noenhanced
set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb grey dt 2
plot ARG1 using 1:3:xtic(2) with boxes linetype 1 notitle, \
     ARG1 using 1:4:(0):($5 - $4) with vectors heads size 0.08,90 \
         lc rgb "#e0742a" lw 2 notitle
