# One run's values, a row a case: $dot (value, row, colour) and, `ranges` of
# them, $range (low, row, width, 0, colour).
set border 0
set ytics offset 0, 0
set grid xtics ytics lc rgb grid, lc rgb grid
draw = '$dot using 1:2:3 with points pt 7 ps 0.8 lc rgb variable'
if (ranges) draw = '$range using 1:2:3:4:5 \
    with vectors nohead lc rgb variable, '.draw
eval 'plot '.draw
