# Kernels under the roofs: $roof (intensity, rate), a block a roof, and $dot
# (intensity, rate, size, colour). roofs counts blocks.
set border 3 lc rgb axis
set grid xtics ytics lc rgb grid, lc rgb grid
plot for [i = 0:roofs - 1] $roof index i using 1:2 with lines lc rgb roof, \
     $dot using 1:2:3:4 with points pt 7 ps variable lc rgb variable
