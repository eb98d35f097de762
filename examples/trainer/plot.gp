# Copyright 2026 The M2PO plugin authors
# SPDX-License-Identifier: Apache-2.0
#
# gnuplot -e "runs='DIRECTORY'; staleness=K" plot.gp: draws DIRECTORY/demo.svg and demo.png from
# DIRECTORY/{on-policy,grpo,m2po}.tsv, whose columns are update, held-out accuracy (nan where not
# measured), masked or clipped fraction. Colours of Okabe and Ito, and a dash each.

set style line 1 linecolor rgb '#000000' linewidth 2.5 dashtype (3,3)
set style line 2 linecolor rgb '#D55E00' linewidth 2.5 dashtype (14,4)
set style line 3 linecolor rgb '#0072B2' linewidth 2.5 dashtype 1
set border 3 linecolor rgb '#606060'
set tics nomirror out
set grid back linecolor rgb '#d8d8d8' linetype 1
set lmargin 11
set rmargin 3
set datafile separator tab
set datafile missing 'nan'

run(name) = runs . '/' . name . '.tsv'
stale(name) = sprintf('%s, rollouts %d updates old', name, staleness)

draw = "\
set output output; \
set multiplot; \
set key bottom right samplen 5 spacing 1.3; \
set origin 0, 0.38; set size 1, 0.62; set bmargin 1; set tmargin 2; \
set title 'Held-out accuracy'; \
set ytics 0.1; set ylabel 'share of sums right'; set yrange [*:1]; set format x ''; unset xlabel; \
plot run('on-policy') using 1:2 with lines linestyle 1 title 'on-policy', \
     run('m2po') using 1:2 with lines linestyle 3 title stale('m2po'), \
     run('grpo') using 1:2 with lines linestyle 2 title stale('grpo'); \
set origin 0, 0; set size 1, 0.38; set bmargin 4; set tmargin 2; \
set title 'Tokens without a gradient: masked by m2po, clipped by grpo'; \
set ylabel 'share of valid tokens'; set yrange [0:*]; set ytics 0.05; set format x '%g'; \
set xlabel 'update'; unset key; \
plot run('m2po') using 1:3 with lines linestyle 3 linewidth 1.5, \
     run('grpo') using 1:3 with lines linestyle 2 linewidth 1.5; \
unset multiplot; \
set output"

set terminal svg size 900,640 font 'sans-serif,15' background rgb 'white'
output = runs . '/demo.svg'
@draw

set terminal pngcairo size 1350,960 font 'Sans,16' background rgb 'white'
output = runs . '/demo.png'
@draw
