# SLEET_ADD_CFLAGS(VARIABLE, FLAGS): append each flag that the compiler takes.
# Asked with -Werror, because clang only warns about an option it does not know.
AC_DEFUN([SLEET_ADD_CFLAGS], [
  for sleet_flag in $2; do
    AC_MSG_CHECKING([whether $CC takes $sleet_flag])
    sleet_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS -Werror $sleet_flag"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int probe(void); int probe(void) { return 0; }]])],
      [AC_MSG_RESULT([yes]); AS_VAR_APPEND([$1], [" $sleet_flag"])],
      [AC_MSG_RESULT([no])])
    CFLAGS=$sleet_saved_cflags
  done
])
