# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# gnuplot -e "data='FILE'; plot_to='PATH'; titles='"A" "B"'; styles='1 2 1'" curves.gp
#
# Draws PATH.svg and PATH.png. FILE has a block for each run, whose columns are update, held-out accuracy, accuracy of
# fresh rollouts, m2, share of tokens without a gradient (nan where not measured). `styles` has the number of each
# run's title. Colours of Okabe and Ito, and a dash each.

set style line 1 linecolor rgb '#0072B2' linewidth 2 dashtype 1
set style line 2 linecolor rgb '#D55E00' linewidth 2 dashtype (14,4)
set style line 3 linecolor rgb '#CC79A7' linewidth 2 dashtype (6,3)
set style line 4 linecolor rgb '#000000' linewidth 2 dashtype (3,3)
set style line 5 linecolor rgb '#009E73' linewidth 2 dashtype (8,3,2,3)
set datafile separator tab
set datafile missing 'nan'
set lmargin 9
set rmargin 3
set bmargin 3.5
set tmargin 2.5
runs = words(styles)

do for [format in "svg png"] {
  if (format eq "svg") {
    set terminal svg enhanced size 900, 720 font 'sans-serif,13' background rgb 'white'
  } else {
    set terminal pngcairo enhanced size 1350, 1080 font 'Sans,14' background rgb 'white'
  }
  set output plot_to . '.' . format
  set multiplot

  set origin 0, 0.9
  set size 1, 0.1
  unset border; unset xtics; unset ytics; unset xlabel; unset grid; unset logscale y; unset title
  set xrange [0:1]
  set yrange [0:1]
  set key center center horizontal reverse Left samplen 4 maxcols 2
  plot for [i = 1:words(titles)] NaN with lines linestyle i title word(titles, i) noenhanced

  unset key
  set border 3 linecolor rgb '#606060'
  set xtics nomirror out
  set ytics nomirror out
  set grid back linecolor rgb '#d8d8d8' linetype 1
  set xlabel 'update' offset 0, 0.5
  set xrange [0:*]
  set size 0.5, 0.45

  set origin 0, 0.45
  set title 'Accuracy on held-out questions, greedy'
  set yrange [0:1]
  plot for [r = 1:runs] data index r - 1 using 1:($2 == $2 ? $2 : 1/0) with linespoints linestyle int(word(styles, r)) pointtype 7 pointsize 0.4

  set origin 0.5, 0.45
  set title 'Accuracy of fresh rollouts, mean of 5 batches'
  plot for [r = 1:runs] data index r - 1 using 1:3 with lines linestyle int(word(styles, r))

  set origin 0, 0
  set title 'm2 before the selection'
  set yrange [1e-2:*]
  set logscale y
  plot for [r = 1:runs] data index r - 1 using 1:($4 > 1e-2 ? $4 : 1/0) with lines linestyle int(word(styles, r))

  set origin 0.5, 0
  set title 'Tokens without a gradient: masked or clipped'
  unset logscale y
  set yrange [0:*]
  plot for [r = 1:runs] data index r - 1 using 1:5 with lines linestyle int(word(styles, r))
  unset multiplot
  set output
}
