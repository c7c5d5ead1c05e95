# gnuplot -c ratio.gp TABLE SVG TITLE UNIT: one bar a model, with interval.
load ARG0[:strlen(ARG0)-8]."style.gp"
set output ARG2
set title ARG3 noenhanced
set ylabel ARG4
set yrange [0:*]
set xrange [0.4:*]
set offsets 0, 0.6, 0, 0
set boxwidth 0.6
set style fill solid 0.7
set xtics rotate by 30 right noenhanced
set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb grey dt 2
plot ARG1 using 1:3:xtic(2) with boxes linetype 1 notitle, \
     ARG1 using 1:3:4:5 with yerrorbars lc rgb grey lw 2 pt 0 notitle
