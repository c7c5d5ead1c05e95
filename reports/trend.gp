# Values by run. Blocks, one a series: $band (run, low, high) and $line (run,
# value), of the colours that band_colours and line_colours list. Rows: $step
# (run, low, 0, height, colour), $fail (run, value), $dot (run, value, size,
# colour). bands, lines, steps, fails and dots count them; what there is none
# of cannot be named in a plot.
draw = ''
if (bands) draw = draw.'for [i = 0:bands - 1] $band index i using 1:2:3 \
    with filledcurves fc rgb band(int(word(band_colours, i + 1))), '
if (steps) draw = draw.'$step using 1:2:3:4:5 \
    with vectors nohead lc rgb variable, '
if (lines) draw = draw.'for [i = 0:lines - 1] $line index i using 1:2 \
    with lines lc rgb series(int(word(line_colours, i + 1))), '
if (fails) draw = draw.'$fail using 1:2 with points pt 2 ps 0.7 lc rgb bad, '
if (dots) draw = draw.'$dot using 1:2:3:4 \
    with points pt 7 ps variable lc rgb variable, '
eval 'plot '.draw[:strlen(draw) - 2]
