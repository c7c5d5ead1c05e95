# What all plots share. Colours stand for classes of the page's style (see
# svg.h): 0x0000NN becomes class sNN, fNN or tNN, so that light and dark need
# one plot only.
#
# Variables set before: width, height, left, right, top, bottom (pixels),
# scripts (this folder).
reset
set terminal svg size width,height fixed noenhanced font "sans-serif,12"
set encoding utf8
axis = 1
text = 2
grid = 3
bad = 4
good = 5
roof = 6
faint = 7
label = 8
series(i) = 16 + i  # a line or points
band(i) = 32 + i    # the spread around it
set lmargin at screen left / real(width)
set rmargin at screen 1 - right / real(width)
set tmargin at screen 1 - top / real(height)
set bmargin at screen bottom / real(height)
set border 1 lc rgb axis
set tics nomirror scale 0 tc rgb text noenhanced
set xtics offset 0, 0.2
set ytics offset 0.6, 0
set grid ytics lc rgb grid, lc rgb grid
set format "%g"
unset key
