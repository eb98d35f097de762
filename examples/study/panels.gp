# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# gnuplot -e "data='FILE'; plot_to='PATH'; panels='NAMES'; series='NAMES'; heading='TEXT'; updates=2000; \
#   least=0" panels.gp
#
# Draws PATH.svg and PATH.png: a small panel for each name in `panels`, a line for each in `series`, and a band
# from the least to the most of the seeds. FILE has a block for each panel and series, in that order, whose columns
# are update, least, mean, most (nan where there are no runs). Axes begin at `least`, and are logarithmic where that
# is not 0. Colours of Okabe and Ito, and a dash each.

set style line 1 linecolor rgb '#D55E00' linewidth 2 dashtype (14,4)
set style line 2 linecolor rgb '#000000' linewidth 2 dashtype (3,3)
set style line 3 linecolor rgb '#0072B2' linewidth 2 dashtype 1
set style line 4 linecolor rgb '#009E73' linewidth 2 dashtype (8,3,2,3)
set style line 5 linecolor rgb '#CC79A7' linewidth 2 dashtype (6,3)
set style fill transparent solid 0.15 noborder
set datafile separator tab
set datafile missing 'nan'

# One scale for all panels.
stats data using 4 nooutput
most = STATS_max > least ? STATS_max : least + 1

columns = words(panels) > 4 ? 3 : words(panels) > 1 ? 2 : 1
rows = (words(panels) + columns - 1) / columns
lines = words(series)
strip = 70.0 / (70 + 260 * rows) # the heading and the key, above the panels
height = (1 - strip) / rows

do for [format in "svg png"] {
  if (format eq "svg") {
    set terminal svg noenhanced size 900, 70 + 260 * rows font 'sans-serif,13' background rgb 'white'
  } else {
    set terminal pngcairo noenhanced size 1350, 105 + 390 * rows font 'Sans,14' background rgb 'white'
  }
  set output plot_to . '.' . format
  set multiplot

  set origin 0, 1 - strip
  set size 1, strip
  set tmargin 2
  set bmargin 0
  set title heading
  unset border
  unset xtics
  unset ytics
  unset xlabel
  unset grid
  unset logscale y
  set xrange [0:1]
  set yrange [0:1]
  set key center center horizontal reverse Left samplen 4
  plot for [s = 1:lines] NaN with lines linestyle s title word(series, s)

  set border 3 linecolor rgb '#606060'
  set xtics nomirror out
  set ytics nomirror out
  set xlabel 'update' offset 0, 0.5
  set grid back linecolor rgb '#d8d8d8' linetype 1
  set bmargin 3.5
  set lmargin 9
  set rmargin 3
  set xrange [0:updates]
  set yrange [least:most]
  if (least > 0) {
    set logscale y
  }
  unset key
  do for [p = 1:words(panels)] {
    set origin real((p - 1) % columns) / columns, 1 - strip - height * ((p - 1) / columns + 1)
    set size 1.0 / columns, height
    set title word(panels, p)
    plot for [s = 1:lines] data index (p - 1) * lines + s - 1 using 1:2:4 with filledcurves linestyle s, \
         for [s = 1:lines] data index (p - 1) * lines + s - 1 using 1:3 with lines linestyle s
  }
  unset multiplot
  set output
}
