# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# gnuplot -e "data='FILE'; plot_to='PATH'" threshold.gp
#
# Draws PATH.svg and PATH.png: final accuracy against the threshold. FILE has a block with a row for each run, and one
# with a row for each threshold and the mean of its runs; both are threshold, accuracy.

set border 3 linecolor rgb '#606060'
set tics nomirror out
set grid back linecolor rgb '#d8d8d8' linetype 1
set lmargin 10
set rmargin 4
set datafile separator tab
set datafile missing 'nan'
set logscale x 2
set xlabel 'm2_threshold'
set ylabel 'final held-out accuracy'
set xrange [*:*] noextend
set offsets graph 0.05, graph 0.05, graph 0.1, graph 0.1
set key top right

draw = "\
set output output; \
plot data index 0 using 1:2:xtic(1) with points pointtype 6 pointsize 1 linecolor rgb '#D55E00' title 'a run', \
     data index 1 using 1:2 with linespoints pointtype 7 linewidth 2 linecolor rgb '#0072B2' title 'mean'; \
set output"

set terminal svg noenhanced size 700,420 font 'sans-serif,14' background rgb 'white'
output = plot_to . '.svg'
@draw

set terminal pngcairo noenhanced size 1050,630 font 'Sans,15' background rgb 'white'
output = plot_to . '.png'
@draw
