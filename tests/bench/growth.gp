# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# gnuplot -e "directory='DIRECTORY'" growth.gp: draws DIRECTORY/growth.svg from growth.tsv beside it,
# whose columns are tokens and nanoseconds a token: the floor, m2po, two rules in torch (nan where not
# measured). A level line is linear cost. Colours of Okabe and Ito, and a dash each.

set style line 1 linecolor rgb '#000000' linewidth 2.5 dashtype (3,3)
set style line 2 linecolor rgb '#0072B2' linewidth 2.5 dashtype 1
set style line 3 linecolor rgb '#D55E00' linewidth 2.5 dashtype (14,4)
set style line 4 linecolor rgb '#009E73' linewidth 2.5 dashtype (8,3,2,3)
set lmargin 11
set rmargin 4
set border 3 linecolor rgb '#606060'
set tics nomirror out
set grid back linecolor rgb '#d8d8d8' linetype 1
set datafile separator tab
set datafile missing 'nan'
set logscale x 2
set logscale y
set format x '2^{%L}'
set xlabel 'tokens'
set ylabel 'ns a token'
set yrange [0.1:1000]
set title 'Mask, loss and gradient, one thread, stale rollouts'
set key outside top center horizontal samplen 4 font ',13'
set terminal svg enhanced size 900,560 font 'sans-serif,15' background rgb 'white'
set output directory . '/growth.svg'
plot for [column = 2:5] directory . '/growth.tsv' using 1:column with linespoints \
  linestyle column - 1 pointtype 7 pointsize 0.5 title columnheader(column)
set output
