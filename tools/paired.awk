# paired.awk - Student's t for small samples; put before an awk program.

# The 97.5 % quantile with df degrees of freedom.
function t95(df) {
    split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228", t, " ")
    return df < 1 ? 0 : df <= 10 ? t[df] : 2.228 - 0.268 * (1 - 10 / df)
}
# Half of the 95 % interval of a mean of n values, from their sum and sum of squares; 0 for one.
function half95(sum, squares, n) {
    if (n < 2) return 0
    return t95(n - 1) * sqrt((squares - sum * sum / n) / (n - 1) / n + 1e-12)
}
