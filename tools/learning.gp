# learning.gp - draws the differences of learning.sh against loss, a panel a task.
# Variables: points (its data: task, series, loss %, difference, half of the interval), image.
tasks = system(sprintf("cut -d' ' -f1 '%s' | awk '!seen[$0]++'", points))
series = system(sprintf("cut -d' ' -f2 '%s' | awk '!seen[$0]++'", points))
set terminal pngcairo size 900, 60 + 260 * ((words(tasks) + 1) / 2)
set output image
set multiplot layout (words(tasks) + 1) / 2, 2
set grid
set key bottom left font ",8"
set xlabel "datagrams lost, %"
set ylabel "difference (better is up)"
set xrange [-2:*]
do for [t = 1:words(tasks)] {
    set title word(tasks, t)
    plot 0 with lines lc "gray" notitle, for [s = 1:words(series)] \
        sprintf("< awk '$1 == \"%s\" && $2 == \"%s\"' '%s'", word(tasks, t), word(series, s), points) \
        using ($3 + 0.3 * (s - 1)):4:5 with yerrorlines lw 1.5 title word(series, s)
}
unset multiplot
