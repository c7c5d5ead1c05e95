# Shared by all plots: greys and hues that read on white and on black, no
# background of their own.
set terminal svg size 640,360 dynamic enhanced font "sans-serif,14"
set encoding utf8
grey = 0x808890
set border 3 lc rgb grey
set tics nomirror tc rgb grey
set xtics tc rgb grey
set ytics tc rgb grey
set key tc rgb grey noenhanced
set title tc rgb grey noenhanced
set ylabel tc rgb grey
set grid ytics lc rgb grey lw 0.4
set linetype 1 lc rgb "#3b8fd6" lw 2 pt 7 ps 0.7
set linetype 2 lc rgb "#e0742a" lw 2 pt 5 ps 0.7
set linetype 3 lc rgb "#2ca58d" lw 2 pt 9 ps 0.8
set linetype 4 lc rgb "#b565c8" lw 2 pt 11 ps 0.8
set linetype 5 lc rgb "#c9a227" lw 2 pt 13 ps 0.8
set linetype 6 lc rgb "#d64f6b" lw 2 pt 6 ps 0.8
set linetype cycle 6
