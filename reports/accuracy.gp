# Accuracy over latency: $link (value, accuracy), a block a model, and $dot
# (value, accuracy, colour). links counts blocks.
set border 3 lc rgb axis
set grid xtics ytics lc rgb grid, lc rgb grid
plot for [i = 0:links - 1] $link index i using 1:2 with lines lc rgb faint, \
     $dot using 1:2:3 with points pt 7 ps 0.9 lc rgb variable
