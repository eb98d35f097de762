# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# gnuplot -e "data='FILE'; plot_to='PATH'" words.gp
#
# Draws PATH.svg and PATH.png from FILE, whose columns are a token, and how often it was dropped and kept.

set style data histograms
set style histogram rowstacked
set style fill solid noborder
set boxwidth 0.75
set datafile separator tab
set border 3 linecolor rgb '#606060'
set xtics nomirror rotate by -40 noenhanced
set ytics nomirror out
set grid ytics back linecolor rgb '#d8d8d8' linetype 1
set yrange [0:*]
set ylabel 'tokens'
set title 'Tokens that m2po drops most often'
set key top right

set terminal svg size 900, 460 font 'sans-serif,13' background rgb 'white'
set output plot_to . '.svg'
plot data using 2:xtic(1) linecolor rgb '#D55E00' title 'dropped', data using 3 linecolor rgb '#b0c4d8' title 'kept'

set terminal pngcairo size 1350, 690 font 'Sans,14' background rgb 'white'
set output plot_to . '.png'
replot
